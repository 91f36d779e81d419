import type { PeerType } from '../contract/peer.ts';
import { InvalidValue, WrongUsage } from '../core/errors.ts';
import { type Options, type PinRule, pinRules } from '../core/model.ts';
import type { Secret } from '../core/secret.ts';
import type { Flags } from './command.ts';
import type { Input } from './input.ts';
import { readSecretBytes } from './secrets.ts';

/** What a person decides for this host in one network, beside what the network is told of it. */
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
    byDefault: 'fitted to the underlay and the paths',
  },
  'accept-routes': { kind: 'switch', summary: 'take the routes that connectors serve', byDefault: 'yes' },
  masquerade: {
    kind: 'switch',
    summary: "as a connector, give the tunnel's packets this host's address",
    byDefault: 'yes',
  },
  probe: {
    kind: 'list',
    value: 'HOST[:PORT]',
    summary: 'as a connector, leave a route to the others while no host named so answers behind it, by TCP or ping',
  },
  hosts: { kind: 'switch', summary: 'name the peers in the hosts file: PEER.NETWORK.cpn.internal', byDefault: 'no' },
  'network-secret-file': {
    kind: 'text',
    value: 'PATH',
    summary:
      'a file with 32 random bytes or more, the same on every host: only hosts that have it get a handshake, whatever the control plane says',
  },
  pin: {
    kind: 'text',
    value: 'RULE',
    summary:
      'of a peer whose key becomes another without its own word for it: report takes it and says so, strict keeps the known one until "cpn accept"',
    byDefault: 'report',
    choices: pinRules,
  },
  'rotate-every': {
    kind: 'text',
    value: 'TIME',
    summary: 'how old a key pair may get, such as 30d, before the daemon makes a new one',
    byDefault: 'for ever',
  },
  'allow-route': { kind: 'list', value: 'CIDR', summary: 'take this route although the guard refuses it' },
};

/** Seconds that a key pair may be told to live. A change of keys interrupts the tunnel for a moment. */
export const shortestKeyLife = 3_600;
export const longestKeyLife = 3_650 * 86_400;

/** The options that the flags say, with the usual ones where they say nothing. */
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
  };
}

/** What `--pin` names; `report` where it was left out. */
export function readPinRule(input: Input): PinRule {
  const text = input.text('pin') ?? 'report';
  const rule = pinRules.find((each) => each === text);
  if (rule) return rule;
  throw new InvalidValue('--pin', text, `is none of ${pinRules.join(', ')}`);
}

/** What `--allow-route` names. */
export async function readAllowedRoutes(input: Input) {
  const { parsePrefix } = await import('../core/cidr.ts');
  return input.list('allow-route').map((text) => parsePrefix(text, '--allow-route'));
}

/** What `--probe` names, for a host of this type. */
export async function readProbes(input: Input, type: PeerType) {
  const { mostProbes, parseProbeTarget } = await import('../core/probe-target.ts');
  const probes = input.list('probe').map((text) => parseProbeTarget(text, '--probe'));
  if (probes.length > mostProbes) {
    throw new WrongUsage(`--probe was given ${probes.length} times; name at most ${mostProbes} hosts`);
  }
  if (probes.length > 0 && type !== 'connector') {
    throw new WrongUsage(`--probe is for the LAN behind a connector; leave it out, or join with --type connector`);
  }
  return probes;
}

/** The bytes of `--network-secret-file`; null where it was not given. */
export async function readNetworkSecret(input: Input): Promise<Secret | null> {
  const given = input.text('network-secret-file');
  if (given === undefined) return null;
  const { parseNetworkSecret } = await import('../core/network-secret.ts');
  const path = given.replace(/^file:/, '');
  return parseNetworkSecret(await readSecretBytes(path, 'the network secret'), `--network-secret-file ${path}`);
}
