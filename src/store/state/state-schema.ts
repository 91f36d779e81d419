import * as v from 'valibot';
import { identityOf, parseIdentityKey } from '../../core/crypto/identity.ts';
import { parsePublicKey, parseSecretKey } from '../../core/crypto/keys.ts';
import { type Peer, type PeerFields, peerTypes } from '../../core/map/model.ts';
import { defaultOf, type OptionRule, type Options, optionRules, parseProbeTarget } from '../../core/map/options.ts';
import { listedPeerFields, type PeerField, type PeerFieldName } from '../../core/map/peer-fields.ts';
import { parsePrefixMap } from '../../core/map/prefix-maps.ts';
import { parseAddress, restorePrefix } from '../../core/net/cidr.ts';
import { parseEndpoint } from '../../core/net/endpoint.ts';
import { features, instant, int, peerId, secret, serviceAddress } from '../files/file-schema.ts';
import { rotationPhases } from './state.ts';

/** The version of the state file format. A file with a later version is never changed. */
export const stateVersion = 1;

const address = v.pipe(v.string(), v.transform(parseAddress));
const prefix = v.pipe(
  v.string(),
  v.transform((text) => restorePrefix(text)),
);
const endpoint = v.pipe(v.string(), v.transform(parseEndpoint));
const probeTarget = v.pipe(v.string(), v.transform(parseProbeTarget));
const prefixMap = v.pipe(
  v.string(),
  v.transform((text) => parsePrefixMap(text)),
);
const dnsServer = v.object({ address, port: int });
const publicKey = v.pipe(v.string(), v.transform(parsePublicKey));
const privateKey = v.pipe(
  v.string(),
  v.transform((text) => parseSecretKey(text)),
);
const identityKey = v.pipe(v.string(), v.transform(parseIdentityKey));
const peerType = v.picklist(peerTypes);

const keyProof = v.object({ serial: int, signature: v.string() });
const known = v.object({ peer: peerId, address, publicKey, identity: v.nullable(identityKey), serial: int });

const fieldSchemas = {
  text: v.string(),
  number: int,
  instant: int,
  identityKey,
  keyProof,
  via: v.object({ connector: v.nullable(peerId) }),
  flag: v.literal(true),
  tags: v.array(v.string()),
} satisfies Record<PeerField['kind'], v.GenericSchema>;

type FieldEntries = {
  readonly [Name in PeerFieldName]: v.ExactOptionalSchema<
    v.GenericSchema<unknown, Required<PeerFields>[Name]>,
    undefined
  >;
};
const fieldEntries = Object.fromEntries(
  listedPeerFields.map(([name, { kind }]) => [name, v.exactOptional<v.GenericSchema>(fieldSchemas[kind])]),
) as unknown as FieldEntries;

const peer = v.object({
  id: peerId,
  name: v.string(),
  type: peerType,
  publicKey,
  address,
  endpoint: v.nullable(endpoint),
  routes: v.nullable(v.array(prefix)),
  withdrawn: v.optional(v.array(prefix), () => []),
  given: v.exactOptional(
    v.object({ allowedIps: v.array(prefix), presharedKey: v.nullable(secret), keepalive: v.nullable(int) }),
  ),
  ...fieldEntries,
  unlisted: v.exactOptional(v.literal(true)),
} satisfies Record<keyof Peer, v.GenericSchema>);

/** The fields of a peer in the order of their row in a state file. */
export const peerNames = (Object.keys(peer.entries) as (keyof typeof peer.entries)[]).toSorted();

const skippedPeer = v.object({
  id: v.nullable(peerId),
  name: v.nullable(v.string()),
  publicKey: v.nullable(v.string()),
  address: v.nullable(v.string()),
  reason: v.string(),
});

const selector = v.variant('kind', [
  v.object({ kind: v.literal('any') }),
  v.object({ kind: v.literal('peer'), id: peerId }),
  v.object({ kind: v.literal('tag'), tag: v.string() }),
  v.object({ kind: v.literal('route'), prefix }),
  v.object({ kind: v.literal('cidr'), prefix }),
  v.object({ kind: v.literal('gone'), name: v.string() }),
]);

const accessRules = v.object({
  rules: v.array(
    v.object({
      name: v.string(),
      from: v.array(selector),
      to: v.array(selector),
      protocol: v.picklist(['any', 'tcp', 'udp', 'icmp']),
      ports: v.array(v.object({ first: int, last: int })),
    }),
  ),
  requiresEnforcement: v.boolean(),
  unread: v.exactOptional(v.array(v.string())),
});

const map = v.object({
  id: v.nullable(peerId),
  name: v.string(),
  cidr: prefix,
  routes: v.array(prefix),
  maxAge: v.exactOptional(int),
  relay: v.exactOptional(peerId),
  spread: v.exactOptional(v.literal(true)),
  rules: v.exactOptional(accessRules),
  nonce: v.exactOptional(v.string()),
  routeDns: v.exactOptional(
    v.array(v.object({ route: prefix, servers: v.array(address), domains: v.array(v.string()) })),
  ),
  revision: v.nullable(v.string()),
  peers: v.array(peer),
  skipped: v.exactOptional(v.array(skippedPeer)),
});

/**
 * The number of fields that were added to the stored map since its first version: those of peers,
 * which had 7, and `routeDns`. A stored map with fewer fields is fetched again as a whole. A field
 * that is removed still counts.
 */
export const mapFields = listedPeerFields.length - 7 + 1;
const storedMap = v.pipe(
  v.object({ ...map.entries, fields: v.optional(int, 0) }),
  v.transform(({ fields, ...stored }) => (fields < mapFields ? { ...stored, revision: null } : stored)),
);

const made = v.variant('made', [
  v.object({ made: v.literal('interface'), link: v.string() }),
  v.object({ made: v.literal('firewall'), link: v.string() }),
  v.object({ made: v.literal('rules'), link: v.string(), table: v.exactOptional(v.string()) }),
  v.object({
    made: v.literal('sysctl'),
    key: v.string(),
    before: v.string(),
    after: v.string(),
    opening: v.exactOptional(v.object({ link: v.string(), all: v.string(), links: v.array(v.string()) })),
  }),
  v.object({ made: v.literal('hosts'), link: v.string() }),
  v.object({ made: v.literal('folder'), path: v.string() }),
]);

const openPort = v.object({
  by: v.picklist(['ufw', 'firewalld']),
  port: int,
  zone: v.nullable(v.string()),
  permanent: v.boolean(),
});

/** Every state file has these options; the others were added after the first version. */
const firstOptions: readonly string[] = ['listenPort', 'mtu', 'acceptRoutes', 'masquerade', 'allowRoutes'];

function optionSchema(rule: OptionRule): v.GenericSchema<unknown, Options[keyof Options]> {
  switch (rule.kind) {
    case 'switch':
      return v.boolean();
    case 'choice':
      return v.picklist(rule.words) as v.GenericSchema<unknown, Options['pin']>;
    case 'prefixes':
      return v.array(prefix);
    case 'probes':
      return v.array(probeTarget);
    case 'maps':
      return v.array(prefixMap);
    default:
      return v.nullable(int);
  }
}

const options = v.object(
  Object.fromEntries(
    Object.entries(optionRules).map(([name, rule]) => {
      const schema = optionSchema(rule);
      return [name, firstOptions.includes(name) ? schema : v.optional(schema, () => defaultOf(rule))];
    }),
  ),
) as unknown as v.GenericSchema<unknown, Options>;

/** The content of a state file, and its conversion: no field is used without validation. */
export const stateSchema = v.object({
  version: v.literal(stateVersion),
  interface: v.string(),
  createdAt: instant,
  privateKey,
  publicKey: v.exactOptional(publicKey),
  keySince: v.optional(v.nullable(instant), null),
  keySerial: v.optional(int, 0),
  identity: v.optional(v.nullable(v.pipe(secret, v.transform(identityOf))), null),
  rotation: v.optional(
    v.nullable(
      v.object({
        phase: v.picklist(rotationPhases),
        privateKey,
        proof: v.nullable(keyProof),
        wayBack: v.nullable(keyProof),
        begunAt: instant,
        witnesses: v.array(v.object({ publicKey, latestHandshake: int, peer: v.optional(peerId) })),
      }),
    ),
    null,
  ),
  networkSecret: v.optional(v.nullable(secret), null),
  service: serviceAddress,
  features: v.optional(v.nullable(features), null),
  perhapsEnrolled: v.optional(v.boolean(), false),
  enrollment: v.object({
    idempotencyKey: v.string(),
    tokenHash: v.string(),
    name: v.string(),
    type: peerType,
    endpoint: v.nullable(endpoint),
  }),
  membership: v.nullable(
    v.object({
      peer: v.object({ id: peerId, name: v.string(), address }),
      accessToken: v.nullable(secret),
      personalToken: v.optional(v.nullable(secret), null),
      map: storedMap,
      text: v.exactOptional(v.object({ dns: v.array(v.string()), remarks: v.array(v.string()) })),
    }),
  ),
  options,
  enabled: v.boolean(),
  deletion: v.exactOptional(v.object({ at: instant, resumes: v.boolean() })),
  // Versions before `cpn run` stored one address per name. Fields with a default are newer.
  resolved: v.record(
    v.string(),
    v.union([
      v.array(address),
      v.pipe(
        address,
        v.transform((one) => [one]),
      ),
    ]),
  ),
  refused: v.optional(v.nullable(v.string()), null),
  label: v.exactOptional(v.string()),
  ownsDns: v.exactOptional(v.literal(true)),
  refusedDns: v.exactOptional(
    v.object({
      servers: v.array(dnsServer),
      domains: v.array(v.string()),
      lost: v.array(v.string()),
      failure: v.exactOptional(v.string()),
      at: instant,
    }),
  ),
  failed: v.optional(
    v.array(v.object({ peer: peerId, back: v.boolean(), heard: v.exactOptional(v.number()) })),
    () => [],
  ),
  pathMtu: v.optional(
    v.nullable(v.object({ mtu: int, peer: peerId, underlay: v.string(), measuredAt: instant })),
    null,
  ),
  confirmed: v.exactOptional(v.number()),
  drained: v.optional(v.boolean(), false),
  pins: v.optional(v.array(v.object({ ...known.entries, claimed: v.optional(v.nullable(known), null) })), () => []),
  labels: v.optional(v.array(v.object({ peer: peerId, labels: v.array(v.string()) })), () => []),
  keptOutside: v.optional(v.array(v.object({ address, what: v.string() })), () => []),
  tunnelledResolvers: v.optional(v.array(v.object({ address, route: prefix })), () => []),
  receipt: v.array(made),
  openPorts: v.optional(v.array(openPort), () => []),
});
