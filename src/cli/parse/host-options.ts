import type { PeerType } from '../../contract/peer.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import { WrongUsage } from '../../core/errors/index.ts';
import { type Options, type PinRule, pinRules } from '../../core/map/options.ts';
import { mostProbes, parseProbeTarget } from '../../core/map/probe-target.ts';
import { parsePrefix } from '../../core/net/cidr.ts';
import type { Flags } from '../input/flags.ts';
import { type Input, parseChoice } from '../input/input.ts';
import { readSecretBytes } from '../input/secrets.ts';

/** The local options of this host in one network. */
export const optionFlags: Flags = {
  'listen-port': {
    kind: 'text',
    value: 'PORT',
    summary: 'UDP port to listen on',
    byDefault: "the endpoint's, else any",
  },
  mtu: {
    kind: 'text',
    value: 'BYTES',
    summary: 'MTU of the interface',
    byDefault: 'derived from the underlay and the path MTU',
  },
  'accept-routes': { kind: 'switch', summary: 'accept the routes that connectors serve', byDefault: 'yes' },
  masquerade: {
    kind: 'switch',
    summary: 'connector only: masquerade packets from the tunnel as this host',
    byDefault: 'yes',
  },
  probe: {
    kind: 'list',
    value: 'HOST[:PORT]',
    summary: 'connector only: withdraw a route while none of its probed hosts answers by TCP or ping',
  },
  hosts: {
    kind: 'switch',
    summary: 'write the names of the peers to the hosts file: PEER.NETWORK.cpn.internal',
    byDefault: 'no',
  },
  'open-firewall': {
    kind: 'switch',
    summary: 'allow UDP to the listen port in ufw or firewalld, where active, until this host leaves',
    byDefault: 'no',
  },
  'network-secret-file': {
    kind: 'text',
    value: 'PATH',
    summary:
      'file with at least 32 random bytes, the same on every host; only hosts that have it complete a handshake, whatever the control plane sends',
  },
  pin: {
    kind: 'text',
    value: 'RULE',
    summary: `when a peer's key changes without a signed proof: report accepts it and warns, strict keeps the pinned key until "cpn accept"`,
    byDefault: 'report',
    choices: pinRules,
  },
  'rotate-every': {
    kind: 'text',
    value: 'TIME',
    summary: 'maximum age of the key pair, such as 30d; the daemon then rotates it',
    byDefault: 'for ever',
  },
  'strict-tunnel': {
    kind: 'switch',
    summary: 'full tunnel only: other routes of this host, such as those of DHCP, take nothing from it',
    byDefault: 'no',
  },
  'allow-ipv6-outside': {
    kind: 'switch',
    summary: 'full tunnel only: let IPv6 out past the tunnel, instead of rejecting it',
    byDefault: 'no',
  },
  'allow-route': { kind: 'list', value: 'CIDR', summary: 'accept this route although the guard refuses it' },
};

/** Seconds. The minimum is high because a rotation interrupts the tunnel briefly. */
export const shortestKeyLife = 3_600;
export const longestKeyLife = 3_650 * 86_400;

/** The options of the flags, with defaults for omitted flags. */
export async function readOptions(input: Input, type: PeerType): Promise<Options> {
  return {
    listenPort: input.number('listen-port', 1, 65535) ?? null,
    mtu: input.number('mtu', 576, 9000) ?? null,
    acceptRoutes: input.switch('accept-routes', true),
    masquerade: input.switch('masquerade', true),
    allowRoutes: await readAllowedRoutes(input),
    probes: await readProbes(input, type),
    hosts: input.switch('hosts'),
    pin: readPinRule(input),
    rotateEvery: input.period('rotate-every', shortestKeyLife, longestKeyLife) ?? null,
    openFirewall: input.switch('open-firewall'),
    strictTunnel: input.switch('strict-tunnel'),
    allowIpv6Outside: input.switch('allow-ipv6-outside'),
  };
}

/** The value of `--pin`, by default `report`. */
export function readPinRule(input: Input): PinRule {
  return parseChoice('--pin', input.text('pin') ?? 'report', pinRules);
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

/** The bytes of `--network-secret-file`. Null if it was omitted. */
export async function readNetworkSecret(input: Input): Promise<Secret | null> {
  const given = input.text('network-secret-file');
  if (given === undefined) return null;
  const { parseNetworkSecret } = await import('../../core/crypto/network-secret.ts');
  const path = given.replace(/^file:/, '');
  return parseNetworkSecret(await readSecretBytes(path, 'the network secret'), `--network-secret-file ${path}`);
}
