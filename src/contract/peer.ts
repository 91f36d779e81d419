import * as z from 'zod';
import { identifier, instant, nameShown, requiredText, text } from './text.ts';

/** The maximum number of tags of a peer. */
const mostTags = 16;
const tagForm = '1 to 63 lower case letters, digits and hyphens, with no hyphen at an end';

/** Tags by which rules select a peer. core/rules/selector.ts parses each one. */
export const Tags = z.array(text(63)).max(mostTags, { error: `must be at most ${mostTags} tags` });

/** The role of a host: a box that serves routes, a person's device, or an origin server. */
export const PeerType = z.enum(['connector', 'admin_device', 'origin']).meta({ id: 'PeerType' });
export type PeerType = z.infer<typeof PeerType>;

/** A Curve25519 public key: 32 bytes in base64, as `wg pubkey` prints it. */
const publicKeyPattern = /^[A-Za-z0-9+/]{43}=$/;
const PublicKey = z
  .string()
  .max(120)
  .regex(publicKeyPattern, { error: 'must be a WireGuard public key: 43 base64 characters and "="' })
  .meta({
    format: 'wireguard-key',
    description: '32 bytes in base64. A non-canonical spelling is a 422.',
  });

/** The token of a short-lived enrolment key. */
const EnrollmentToken = z
  .string()
  .max(128, { error: 'must be at most 128 characters' })
  .regex(/^cpn_[\x21-\x7e]+$/, { error: 'must begin with "cpn_"' });

const endpointForms = 'HOST:PORT, IPv4:PORT or [IPv6]:PORT.';

/** Parsed by core/net/endpoint.ts. */
const Endpoint = text(255).meta({ maxLength: 255, format: 'endpoint', description: endpointForms });

/** The host's signature of its public key. core/crypto/identity.ts defines the signed text. */
export const KeyProof = z
  .object({
    serial: z
      .int()
      .min(1)
      .meta({ description: 'Milliseconds since 1970; of two proofs the one with the higher serial holds.' }),
    signature: z
      .string()
      .max(120)
      .regex(/^[A-Za-z0-9+/]{86}==$/, { error: 'must be an Ed25519 signature: 86 base64 characters and "=="' }),
  })
  .meta({ id: 'KeyProof' });
export type KeyProof = z.infer<typeof KeyProof>;

export const IdentityKey = PublicKey.meta({
  format: 'ed25519-key',
  description: 'An Ed25519 public key in base64, that identifies a host across changes of its WireGuard key.',
});

const signature = '[A-Za-z0-9+/]{86}==';

export const IdentityProof = z
  .string()
  .max(120)
  .regex(new RegExp(`^${signature}$`), { error: 'must be an Ed25519 signature: 86 base64 characters and "=="' })
  .meta({
    description:
      'An Ed25519 signature by the identity key over the lines "cpn enroll 1", the public_key, and the SHA-256 of the enrollment_token in hexadecimal, each with a line feed.',
  });

export const EnrolledKeyProof = z
  .string()
  .max(140)
  .regex(new RegExp(`^[1-9][0-9]{0,14} ${signature}$`), { error: 'must be a serial, a space and an Ed25519 signature' })
  .meta({ description: 'The key_proof of the public_key: its serial, a space, and its signature.' });

export const NetworkSecretTag = z
  .string()
  .max(16)
  .regex(/^[0-9a-f]{16}$/, { error: 'must be 16 hexadecimal digits' })
  .meta({ description: 'The same for hosts that share a network secret; it reveals nothing about the secret.' });

const Priority = z.int().min(0).max(1000);
const rank =
  'Of a connector, set by owners, admins and members: of the healthy connectors, the one with the highest priority serves, then the one with the earliest serving_since, then the lowest id.';

/** Parameters of a file for the official apps, whose only peer is a connector that forwards. */
const NewDeviceProfile = z.object({
  connector: identifier.meta({ description: 'A connector of the network that has an endpoint and relays.' }),
  routes: z
    .array(text(32))
    .max(50, { error: 'must be at most 50 routes' })
    .meta({ description: 'The routes of the network that the file leads into the tunnel, next to private_cidr.' }),
});

export const EnrollRequest = z
  .object({
    enrollment_token: EnrollmentToken,
    name: requiredText(120),
    peer_type: PeerType.optional(),
    public_key: PublicKey,
    endpoint: Endpoint.optional(),
    follows_relay: z.boolean().optional().meta({ description: "The host uses the network's relay from its start." }),
    enforces_rules: z.boolean().optional().meta({ description: 'The host enforces the rules of a closed network.' }),
    profile: NewDeviceProfile.optional().meta({
      description:
        'Of a device on which cpn does not run: its file names this connector alone. Not for a connector, and not with an endpoint.',
    }),
  })
  .meta({ id: 'EnrollRequest' });
export type EnrollRequest = z.infer<typeof EnrollRequest>;

/** Absent fields stay unchanged. `null` removes the endpoint or the limit on routes. */
export const ChangePeer = z
  .object({
    name: requiredText(120).optional(),
    public_key: PublicKey.optional(),
    endpoint: Endpoint.nullable().optional(),
    routes: z.array(text(32)).max(50).nullable().optional(),
    expected_routes: z.array(text(32)).max(50).nullable().optional().meta({
      description:
        'The routes that the caller saw the connector serve, those in withdrawn too, in any order; null for all. A change is a 409 if it has other routes now.',
    }),
    withdrawn: z.array(text(32)).max(51).optional().meta({
      description:
        'What a connector takes out of service: routes of the network, and its private_cidr, which stands for relaying. Replaces what was withdrawn before.',
    }),
    key_proof: KeyProof.optional().meta({
      description:
        "By the peer's identity_key, for the public_key of the same request; without one, a new public_key has no proof.",
    }),
    network_secret_tag: NetworkSecretTag.nullable().optional(),
    priority: Priority.optional().meta({ description: rank }),
    masquerades: z.boolean().optional().meta({
      description: 'A connector masquerades what it forwards into its LANs. Hosts spread over such connectors alone.',
    }),
    tags: Tags.optional().meta({
      description: `All tags from now on: ${tagForm}. Only owners and admins set them.`,
    }),
    suspended: z.boolean().optional().meta({
      description:
        'A suspended peer keeps id, name and address. No map has it, so that no host talks to it, and its token gets a 403.',
    }),
    expires_at: instant.nullable().optional().meta({
      description:
        'The time from which the peer is out of the network, like a suspended one; null for never. A later time brings an expired peer back.',
    }),
  })
  .meta({ id: 'ChangePeer' });
export type ChangePeer = z.infer<typeof ChangePeer>;

/** A configuration file for the official apps, as of enrolment. Later changes do not reach it. */
export const DeviceProfile = z
  .object({
    connector: identifier.meta({ description: 'The connector that the file names.' }),
    public_key: PublicKey,
    endpoint: z.string().meta({ maxLength: 255, format: 'endpoint', description: endpointForms }),
    routes: z.array(z.cidrv4()).meta({ description: 'The routes in the file.' }),
    declined: z
      .array(z.cidrv4())
      .meta({ description: 'Routes of the network at that time that the file does not have.' }),
  })
  .meta({ id: 'DeviceProfile' });
export type DeviceProfile = z.infer<typeof DeviceProfile>;

export const Peer = z
  .object({
    id: identifier,
    name: nameShown,
    peer_type: PeerType,
    public_key: PublicKey,
    address: z.ipv4(),
    endpoint: z.string().meta({ maxLength: 255, format: 'endpoint', description: endpointForms }).nullable(),
    routes: z.array(z.cidrv4()).optional().meta({ description: 'The routes a connector serves; absent means all.' }),
    withdrawn: z.array(z.cidrv4()).optional().meta({
      description:
        'What a connector took out of service: routes it would serve, and private_cidr where it does not relay.',
    }),
    dns_label: z
      .string()
      .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/)
      .optional()
      .meta({
        maxLength: 63,
        description:
          'The label by which hosts resolve the peer, unique in its network. Absent means that of its name: in lower case, with a hyphen for each run of other characters than letters and digits of ASCII.',
      }),
    identity_key: IdentityKey.optional(),
    key_proof: KeyProof.optional(),
    network_secret_tag: NetworkSecretTag.optional(),
    serving_since: instant.optional().meta({
      description:
        'Of a connector: since when it serves. A connector that had nothing in service counts from its return, as a new one does from its enrolment.',
    }),
    priority: Priority.optional().meta({ description: `${rank} Absent means 0.` }),
    suspended_at: instant
      .optional()
      .meta({ description: 'Of a peer that is suspended, or waits for approval; the map of a network has none.' }),
    expires_at: instant.optional().meta({ description: 'When the peer expires, or did. Absent means never.' }),
    reauth_hours: z.int().min(1).optional().meta({
      description:
        'Of the own device of a user: each login of that user moves expires_at to so many hours later. Absent if logins do not move it.',
    }),
    awaiting_approval: instant.optional().meta({
      description:
        'Since when the peer waits for the approval of its identity_key, or of its public_key if it has none. Until then it is in no map but the one that it reads itself, which has no other peer.',
    }),
    via: z.enum(['connectors']).optional().meta({
      description:
        'connectors: the peer dials a connector alone, so every host sends its packets through that connector. Absent for a peer that hosts reach by the usual rules.',
    }),
    profile: DeviceProfile.optional().meta({ description: 'The file of such a peer.' }),
    follows_relay: z.boolean().optional().meta({
      description:
        "The host uses the network's relay, and so accepts packets from it with their sender's address. By its enrolment and then by each report; absent means false.",
    }),
    masquerades: z.boolean().optional().meta({
      description: 'Of a connector, by its own statement: it masquerades what it forwards. Absent means false.',
    }),
    tags: z
      .array(z.string())
      .optional()
      .meta({ description: 'Tags that rules select it by, from an admin or from its enrolment key. Absent for none.' }),
    enforces_rules: z.boolean().optional().meta({
      description: 'By its own statement, its host enforces the rules of a closed network. Absent means false.',
    }),
    created_at: instant,
  })
  .meta({ id: 'Peer' });
export type Peer = z.infer<typeof Peer>;

/** A peer in the list of a network. */
export const ListedPeer = Peer.extend({
  user: z
    .object({ id: identifier.nullable(), email: z.string().meta({ format: 'email', maxLength: 254 }) })
    .optional()
    .meta({
      description:
        'The user whose own device it is, with the id null if that user was removed. Absent for other peers, and for a peer as the caller.',
    }),
}).meta({ id: 'ListedPeer' });
export type ListedPeer = z.infer<typeof ListedPeer>;

/** A peer as users read it individually. */
export const PeerDetails = ListedPeer.extend({
  enrollment_key: z
    .object({ id: identifier, name: nameShown })
    .nullable()
    .meta({ description: 'The key of its latest enrolment; null where that is not on record.' }),
}).meta({ id: 'PeerDetails' });
export type PeerDetails = z.infer<typeof PeerDetails>;
