import * as z from 'zod';
import { parseAddress, parsePrefix } from '../core/cidr.ts';
import { formatEndpoint, parseEndpoint } from '../core/endpoint.ts';
import { identityOf, parseIdentityKey } from '../core/identity.ts';
import { keyPairOf, parsePublicKey } from '../core/keys.ts';
import { type Peer, type Pin, peerTypes, pinRules } from '../core/model.ts';
import { perObject } from '../core/per-object.ts';
import { formatProbeTarget, parseProbeTarget } from '../core/probe-target.ts';
import { Secret } from '../core/secret.ts';
import { type Rotation, rotationPhases, type State } from './state.ts';

/** The version of the format of a state file; a file of a later version is left alone. */
export const stateVersion = 1;

const address = z.string().transform((text) => parseAddress(text));
const prefix = z.string().transform((text) => parsePrefix(text));
const endpoint = z.string().transform((text) => parseEndpoint(text));
const probeTarget = z.string().transform((text) => parseProbeTarget(text));
const publicKey = z.string().transform((text) => parsePublicKey(text));
const secret = z
  .string()
  .min(1)
  .transform((text) => new Secret(text));
const peerType = z.enum(peerTypes);
const peerId = z.union([z.int(), z.string()]);

const identityKey = z.string().transform((text) => parseIdentityKey(text));
const keyPair = secret.transform((privateKey) => keyPairOf(privateKey));
const keyProof = z.object({ serial: z.int(), signature: z.string() });
const known = z.object({ peer: peerId, address, publicKey, identity: identityKey.nullable(), serial: z.int() });

const peer = z.object({
  id: peerId,
  name: z.string(),
  type: peerType,
  publicKey,
  address,
  endpoint: endpoint.nullable(),
  routes: z.array(prefix).nullable(),
  withdrawn: z.array(prefix).default([]),
  identity: identityKey.exactOptional(),
  proof: keyProof.exactOptional(),
  secretTag: z.string().exactOptional(),
  given: z
    .object({ allowedIps: z.array(prefix), presharedKey: secret.nullable(), keepalive: z.int().nullable() })
    .exactOptional(),
  unlisted: z.literal(true).exactOptional(),
});

const map = z.object({
  id: z.int().nullable(),
  name: z.string(),
  cidr: prefix,
  routes: z.array(prefix),
  revision: z.string().nullable(),
  peers: z.array(peer),
});

const made = z.discriminatedUnion('made', [
  z.object({ made: z.literal('interface'), link: z.string() }),
  z.object({ made: z.literal('firewall'), link: z.string() }),
  z.object({ made: z.literal('rules'), link: z.string() }),
  z.object({ made: z.literal('sysctl'), key: z.string(), before: z.string(), after: z.string() }),
  z.object({ made: z.literal('hosts'), link: z.string() }),
  z.object({ made: z.literal('folder'), path: z.string() }),
]);

const schema = z.object({
  version: z.literal(stateVersion),
  interface: z.string(),
  createdAt: z.iso.datetime(),
  privateKey: keyPair,
  keySince: z.iso.datetime().nullable().default(null),
  keySerial: z.int().default(0),
  identity: secret
    .transform((seed) => identityOf(seed))
    .nullable()
    .default(null),
  rotation: z
    .object({
      phase: z.enum(rotationPhases),
      privateKey: keyPair,
      proof: keyProof.nullable(),
      wayBack: keyProof.nullable(),
      begunAt: z.iso.datetime(),
      witnesses: z.array(z.object({ publicKey, latestHandshake: z.int() })),
    })
    .nullable()
    .default(null),
  networkSecret: secret.nullable().default(null),
  service: z.object({ url: z.string(), insecureHttp: z.boolean() }),
  enrollment: z.object({
    idempotencyKey: z.string(),
    tokenHash: z.string(),
    name: z.string(),
    type: peerType,
    endpoint: endpoint.nullable(),
  }),
  membership: z
    .object({
      peer: z.object({ id: peerId, name: z.string(), address }),
      accessToken: secret.nullable(),
      personalToken: secret.nullable().default(null),
      map,
    })
    .nullable(),
  options: z.object({
    listenPort: z.int().nullable(),
    mtu: z.int().nullable(),
    acceptRoutes: z.boolean(),
    masquerade: z.boolean(),
    allowRoutes: z.array(prefix),
    probes: z.array(probeTarget).default([]),
    hosts: z.boolean().default(false),
    pin: z.enum(pinRules).default('report'),
    rotateEvery: z.int().nullable().default(null),
  }),
  enabled: z.boolean(),
  // Before there was `cpn run`, a name had one address. What has a default came later than the format.
  resolved: z.record(z.string(), z.union([z.array(address), address.transform((one) => [one])])),
  refused: z.string().nullable().default(null),
  failed: z.array(z.object({ peer: peerId, back: z.boolean() })).default([]),
  drained: z.boolean().default(false),
  pins: z.array(known.extend({ claimed: known.nullable().default(null) })).default([]),
  receipt: z.array(made),
});

/**
 * The state as the text of its file, secrets in the open; made once of each. The same state always gives the same text. Peers and pins,
 * of which there may be thousands, have a line each, and those that did not change since the last text are not formatted anew.
 */
export const formatState = perObject(({ keyPair, identity, rotation, networkSecret, ...state }: State): string => {
  const { membership, pins } = state;
  const text = {
    version: stateVersion,
    ...state,
    privateKey: keyPair.privateKey.reveal(),
    identity: identity?.seed.reveal() ?? null,
    rotation: rotation && formatRotation(rotation),
    networkSecret: networkSecret?.reveal() ?? null,
    options: { ...state.options, probes: state.options.probes.map(formatProbeTarget) },
    enrollment: {
      ...state.enrollment,
      endpoint: state.enrollment.endpoint && formatEndpoint(state.enrollment.endpoint),
    },
    membership: membership && {
      ...membership,
      accessToken: membership.accessToken?.reveal() ?? null,
      personalToken: membership.personalToken?.reveal() ?? null,
      map: { ...membership.map, peers: [] },
    },
    pins: [],
  };
  const whole = JSON.stringify(text, sortKeys, 2);
  const peers = membership?.map.peers.map(rowOfPeer) ?? [];
  return `${withRows(withRows(whole, 'peers', peers), 'pins', pins.map(rowOfPin))}\n`;
});

/** Puts rows into the empty list of this name, the only one: within a text its quotes would be escaped. */
function withRows(text: string, name: string, rows: readonly string[]): string {
  if (rows.length === 0) return text;
  return text.replace(`"${name}": []`, () => `"${name}": [\n${rows.join(',\n')}\n]`);
}

const rowOfPeer = perObject((peer: Peer) => JSON.stringify(formatPeer(peer), sortKeys));
const rowOfPin = perObject((pin: Pin) => JSON.stringify(pin, sortKeys));

/** Reads what {@link formatState} wrote; throws whatever is wrong with it. */
export function parseState(text: string): State {
  const { version: _, privateKey, keySince, rotation, ...state } = schema.parse(parseJson(text));
  return {
    ...state,
    keyPair: privateKey,
    keySince: keySince ?? state.createdAt,
    rotation: rotation && readRotation(rotation),
  };
}

/** The version a text claims to be of, or null when it is no state at all. */
export function versionOf(text: string): number | null {
  try {
    return z.object({ version: z.int() }).parse(JSON.parse(text)).version;
  } catch {
    return null;
  }
}

/** Node's own message would quote a part of the text, which holds keys. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError(text.trim() === '' ? 'it is empty' : 'it is not JSON');
  }
}

function sortKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

function formatRotation({ keyPair, ...rest }: Rotation) {
  return { ...rest, privateKey: keyPair.privateKey.reveal() };
}

function readRotation({
  privateKey,
  ...rest
}: Omit<Rotation, 'keyPair'> & { privateKey: Rotation['keyPair'] }): Rotation {
  return { ...rest, keyPair: privateKey };
}

function formatPeer({ endpoint: at, given, ...rest }: Peer) {
  const tunnel = given && { ...given, presharedKey: given.presharedKey?.reveal() ?? null };
  return { ...rest, endpoint: at && formatEndpoint(at), ...(tunnel && { given: tunnel }) };
}
