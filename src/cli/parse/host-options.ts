import type { PeerType } from '../../contract/peer.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import {
  defaultOptions,
  mostProbes,
  type OptionRule,
  type Options,
  optionRules,
  parseProbeTarget,
  pinRules,
} from '../../core/map/options.ts';
import { checkMaps, parsePrefixMap } from '../../core/map/prefix-maps.ts';
import { parsePrefix } from '../../core/net/cidr.ts';
import type { Flag } from '../input/flags.ts';
import { type Input, parseChoice } from '../input/input.ts';
import { readSecretBytes } from '../input/secrets.ts';

interface OptionFlag extends Flag {
  /** The option in `core/map/options.ts`, or the network secret, which is stored next to them. */
  readonly option: keyof Options | 'networkSecret';
  /** The word of `cpn set` for the default value. */
  readonly reset?: string;
}

/** The flags of the local options of this host in one network, for `join` and `set`. */
export const optionFlags = {
  'listen-port': {
    option: 'listenPort',
    reset: 'any',
    kind: 'text',
    value: 'PORT',
    summary: 'UDP port to listen on',
    byDefault: "the endpoint's, else any",
  },
  mtu: {
    option: 'mtu',
    reset: 'auto',
    kind: 'text',
    value: 'BYTES',
    summary: 'MTU of the interface',
    byDefault: 'derived from the underlay and the path MTU',
  },
  'accept-routes': {
    option: 'acceptRoutes',
    kind: 'switch',
    summary: 'accept the routes that connectors serve',
    byDefault: 'yes',
  },
  masquerade: {
    option: 'masquerade',
    kind: 'switch',
    summary: 'connector only: masquerade packets from the tunnel as this host',
    byDefault: 'yes',
  },
  probe: {
    option: 'probes',
    kind: 'list',
    value: 'HOST[:PORT]',
    summary: 'connector only: withdraw a route while none of its probed hosts answers by TCP or ping',
  },
  map: {
    option: 'maps',
    kind: 'list',
    value: 'ROUTE=LOCAL',
    summary: 'connector only: serve this route as the LAN prefix LOCAL of the same length, each address 1:1',
  },
  hosts: {
    option: 'hosts',
    kind: 'switch',
    summary: 'write the names of the peers to the hosts file: PEER.NETWORK.cpn.internal',
    byDefault: 'no',
  },
  dns: {
    option: 'dns',
    kind: 'switch',
    summary: 'resolve the names of peers, and the domains behind accepted routes by their DNS servers',
    byDefault: 'yes',
  },
  'open-firewall': {
    option: 'openFirewall',
    kind: 'switch',
    summary: 'allow UDP to the listen port in ufw or firewalld, where active, until this host leaves',
    byDefault: 'no',
  },
  'network-secret-file': {
    option: 'networkSecret',
    reset: 'none',
    kind: 'text',
    value: 'PATH',
    summary:
      'file with at least 32 random bytes, the same on every host; only hosts that have it complete a handshake, whatever the control plane sends',
  },
  pin: {
    option: 'pin',
    kind: 'text',
    value: 'RULE',
    summary: `when a peer's key changes without a signed proof: report accepts it and warns, strict keeps the pinned key until "cpn accept"`,
    byDefault: 'report',
    choices: pinRules,
  },
  'rotate-every': {
    option: 'rotateEvery',
    reset: 'never',
    kind: 'text',
    value: 'TIME',
    summary: 'maximum age of the key pair, such as 30d; the daemon then rotates it',
    byDefault: 'for ever',
  },
  'strict-tunnel': {
    option: 'strictTunnel',
    kind: 'switch',
    summary: 'full tunnel only: ignore other routes of this host, such as those of DHCP',
    byDefault: 'no',
  },
  'allow-ipv6-outside': {
    option: 'allowIpv6Outside',
    kind: 'switch',
    summary: 'full tunnel only: let IPv6 bypass the tunnel, instead of rejecting it',
    byDefault: 'no',
  },
  'local-candidates': {
    option: 'localCandidates',
    kind: 'switch',
    summary: 'give the addresses of this host to peers that try for a direct path',
    byDefault: 'yes',
  },
  'direct-paths': {
    option: 'directPaths',
    kind: 'switch',
    summary: 'try for direct paths to hosts that are reached through a relay',
    byDefault: 'yes',
  },
  'allow-route': {
    option: 'allowRoutes',
    kind: 'list',
    value: 'CIDR',
    summary: 'accept this route although the guard refuses it',
  },
} as const satisfies Readonly<Record<string, OptionFlag>>;

export const listedOptions: readonly (readonly [flag: string, OptionFlag])[] = Object.entries(optionFlags);

/** The options of the flags, and the defaults of the others. */
export async function readOptions(input: Input, type: PeerType): Promise<Options> {
  const allowRoutes = await readAllowedRoutes(input);
  const [probes, maps] = [await readProbes(input, type), await readMaps(input, type)];
  return { ...defaultOptions, ...readGivenOptions(input), allowRoutes, probes, maps };
}

/** The options with a single value that the flags set; null for a reset word of `cpn set`. */
export function readGivenOptions(input: Input, resets = false): Partial<Options> {
  const given = listedOptions.flatMap(([flag, { option, reset }]) => {
    if (option === 'networkSecret') return [];
    const value =
      resets && reset !== undefined && input.text(flag) === reset ? null : readOption(input, flag, optionRules[option]);
    return value === undefined ? [] : [[option, value] as const];
  });
  return Object.fromEntries(given);
}

/** Undefined for a flag that is left out, and for a list. */
function readOption(input: Input, flag: string, rule: OptionRule): boolean | number | string | undefined {
  switch (rule.kind) {
    case 'switch':
      return input.choice(flag);
    case 'number':
      return input.number(flag, rule.min, rule.max);
    case 'period':
      return input.period(flag, rule.min, rule.max);
    case 'choice': {
      const word = input.text(flag);
      return word === undefined ? undefined : parseChoice(`--${flag}`, word, rule.words);
    }
    default:
      return undefined;
  }
}

export async function readAllowedRoutes(input: Input) {
  return input.list('allow-route').map((text) => parsePrefix(text, '--allow-route'));
}

/** The values of `--probe`, for a host of this type. */
export async function readProbes(input: Input, type: PeerType) {
  const probes = input.list('probe').map((text) => parseProbeTarget(text, '--probe'));
  if (probes.length > mostProbes) {
    throw new WrongUsage(`--probe was given ${probes.length} times; name at most ${mostProbes} hosts`);
  }
  if (probes.length > 0 && type !== 'connector') {
    throw new WrongUsage(`--probe is for the LAN behind a connector; leave it out, or join with --type connector`);
  }
  return probes;
}

/** The values of `--map`, for a host of this type. */
export async function readMaps(input: Input, type: PeerType) {
  const maps = input.list('map').map((text) => parsePrefixMap(text, '--map'));
  checkMaps(maps);
  if (maps.length > 0 && type !== 'connector') {
    throw new WrongUsage('--map is for the LAN behind a connector; leave it out, or join with --type connector');
  }
  return maps;
}

/** The bytes of `--network-secret-file`. Null if it was omitted. */
export async function readNetworkSecret(input: Input): Promise<Secret | null> {
  const given = input.text('network-secret-file');
  if (given === undefined) return null;
  const { parseNetworkSecret } = await import('../../core/crypto/network-secret.ts');
  const path = given.replace(/^file:/, '');
  return parseNetworkSecret(await readSecretBytes(path, 'the network secret'), `--network-secret-file ${path}`);
}
