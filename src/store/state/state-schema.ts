import * as z from 'zod';
import { identityOf, parseIdentityKey } from '../../core/crypto/identity.ts';
import { keyPairOf, parsePublicKey } from '../../core/crypto/keys.ts';
import { Secret } from '../../core/crypto/secret.ts';
import { knownFeatures } from '../../core/map/features.ts';
import { peerTypes } from '../../core/map/model.ts';
import { pinRules } from '../../core/map/options.ts';
import { parseProbeTarget } from '../../core/map/probe-target.ts';
import { parseAddress, parsePrefix } from '../../core/net/cidr.ts';
import { parseEndpoint } from '../../core/net/endpoint.ts';
import { rotationPhases } from './state.ts';

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
const peerId = z.union([z.number(), z.string()]);

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
  servingSince: z.int().exactOptional(),
  priority: z.int().exactOptional(),
  expiresAt: z.int().exactOptional(),
  unlisted: z.literal(true).exactOptional(),
});

const map = z.object({
  id: peerId.nullable(),
  name: z.string(),
  cidr: prefix,
  routes: z.array(prefix),
  revision: z.string().nullable(),
  peers: z.array(peer),
  skipped: z
    .array(
      z.object({
        id: peerId.nullable(),
        name: z.string().nullable(),
        publicKey: z.string().nullable(),
        address: z.string().nullable(),
        reason: z.string(),
      }),
    )
    .exactOptional(),
});

const made = z.discriminatedUnion('made', [
  z.object({ made: z.literal('interface'), link: z.string() }),
  z.object({ made: z.literal('firewall'), link: z.string() }),
  z.object({ made: z.literal('rules'), link: z.string(), table: z.string().exactOptional() }),
  z.object({
    made: z.literal('sysctl'),
    key: z.string(),
    before: z.string(),
    after: z.string(),
    opening: z.object({ link: z.string(), all: z.string(), links: z.array(z.string()) }).exactOptional(),
  }),
  z.object({ made: z.literal('hosts'), link: z.string() }),
  z.object({ made: z.literal('folder'), path: z.string() }),
]);

/** What a state file holds, and what becomes of it as it is read: nothing in it is used as it came. */
export const stateSchema = z.object({
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
      witnesses: z.array(z.object({ publicKey, latestHandshake: z.int(), peer: peerId.optional() })),
    })
    .nullable()
    .default(null),
  networkSecret: secret.nullable().default(null),
  service: z.object({ url: z.string(), insecureHttp: z.boolean() }),
  features: z
    .array(z.string())
    .transform((names) => knownFeatures(names))
    .nullable()
    .default(null),
  perhapsEnrolled: z.boolean().default(false),
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
      text: z.object({ dns: z.array(z.string()), remarks: z.array(z.string()) }).exactOptional(),
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
    openFirewall: z.boolean().default(false),
  }),
  enabled: z.boolean(),
  // Before there was `cpn run`, a name had one address. What has a default came later than the format.
  resolved: z.record(z.string(), z.union([z.array(address), address.transform((one) => [one])])),
  refused: z.string().nullable().default(null),
  failed: z.array(z.object({ peer: peerId, back: z.boolean() })).default([]),
  pathMtu: z
    .object({ mtu: z.int(), peer: peerId, underlay: z.string(), measuredAt: z.iso.datetime() })
    .nullable()
    .default(null),
  drained: z.boolean().default(false),
  pins: z.array(known.extend({ claimed: known.nullable().default(null) })).default([]),
  labels: z.array(z.object({ peer: peerId, labels: z.array(z.string()) })).default([]),
  receipt: z.array(made),
  openPorts: z
    .array(
      z.object({
        by: z.enum(['ufw', 'firewalld']),
        port: z.int(),
        zone: z.string().nullable(),
        permanent: z.boolean(),
      }),
    )
    .default([]),
});
