import type { PeerType } from '../../contract/peer.ts';
import type { Identity, KeyProof } from '../../core/crypto/identity.ts';
import type { KeyPair, PublicKey } from '../../core/crypto/keys.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import type { PathMtu } from '../../core/health/path-mtu.ts';
import type { OpenPort, Receipt } from '../../core/host-state/receipt.ts';
import type { Feature } from '../../core/map/features.ts';
import type { NetworkMap, PeerFailure, PeerId, ProvidedRemarks } from '../../core/map/model.ts';
import type { Options } from '../../core/map/options.ts';
import type { PeerLabels } from '../../core/names/hosts-label.ts';
import type { Resolved } from '../../core/names/resolved-names.ts';
import type { DomainServers } from '../../core/names/split-dns.ts';
import type { Address } from '../../core/net/cidr.ts';
import type { Endpoint } from '../../core/net/endpoint.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';
import type { Pin } from '../../core/pins/match-pins.ts';
import type { KeptOutside } from '../../core/routing/kept-outside.ts';
import type { TunnelledResolver } from '../../core/routing/nested-prefixes.ts';

/** The stored data of one network. */
export interface State {
  readonly interface: string;
  /** When the join started. If two networks overlap, the earlier one takes precedence. */
  readonly createdAt: string;
  readonly keyPair: KeyPair;
  /** When the key pair was created, and the serial of its proof: 0 for the enrolment's. */
  readonly keySince: string;
  readonly keySerial: number;
  /** Null in a network that was joined before identities existed. */
  readonly identity: Identity | null;
  readonly rotation: Rotation | null;
  /** In base64. Each pair of peers derives its preshared key from it. Null without one. */
  readonly networkSecret: Secret | null;
  readonly service: ServiceAddress;
  /** The features of the service, from its last description. Null before the first one. */
  readonly features: readonly Feature[] | null;
  /** True while an enrolment may have succeeded without a reply, and a retry would repeat it. */
  readonly perhapsEnrolled: boolean;
  readonly enrollment: EnrollmentIntent;
  /** Null until the service replies to the enrolment. */
  readonly membership: Membership | null;
  readonly options: Options;
  /** False after `cpn down`: the network stays joined, but down until `cpn up`. */
  readonly enabled: boolean;
  /**
   * Set after the network's deletion: `at` is when this host received it (ISO 8601), `resumes` if
   * it comes up once it exists again. `enabled` is false meanwhile.
   */
  readonly deletion?: { readonly at: string; readonly resumes: boolean };
  readonly resolved: Resolved;
  /** The newest map that cut this host off and was rolled back. It is not applied again. */
  readonly refused: string | null;
  /** Sorted by id. Saved, so that the wg-quick file and the state agree after a reboot. */
  readonly failed: readonly PeerFailure[];
  /** The measured path MTU. Null if all paths carry packets of the usual size. */
  readonly pathMtu: PathMtu | null;
  /** True after `cpn drain`: the connector is out of service until an operator reverts it. */
  readonly drained: boolean;
  /**
   * When the service last confirmed the map, in milliseconds since 1970 by the service's clock.
   * Only for a network whose map has a maximum age. Not every confirmation is saved.
   */
  readonly confirmed?: number;
  /** Pins of listed peers, sorted by id. Then those of peers that left, most recent first. */
  readonly pins: readonly Pin[];
  /** Addresses in accepted routes kept outside; a resolver there is not the network's. */
  readonly keptOutside: readonly KeptOutside[];
  /** Resolvers of this host that are, or were, the destination of accepted routes. */
  readonly tunnelledResolvers: readonly TunnelledResolver[];
  /**
   * The network's label in the names of its peers, unique on this host. It stays if the network is
   * renamed. Absent before the first pass.
   */
  readonly label?: string;
  /** The labels of the map's peers in their names. Empty if this host resolves no names. */
  readonly labels: readonly PeerLabels[];
  readonly receipt: Receipt;
  /** The part of the receipt that 0.1.0 does not read: ports opened in ufw and firewalld. */
  readonly openPorts: readonly OpenPort[];
  /** Another such part: present if the DNS settings of the interface are ours. */
  readonly ownsDns?: true;
  /** DNS settings that this host removed, because names did not resolve with them. */
  readonly refusedDns?: RefusedDns;
}

/** DNS settings with which the names `lost` did not resolve, or which the resolver did not take. */
export interface RefusedDns extends DomainServers {
  readonly lost: readonly string[];
  /** Why the resolver did not take them. */
  readonly failure?: string;
  /** In ISO 8601. */
  readonly at: string;
}

export const rotationPhases = ['announcing', 'confirming', 'returning'] as const;

/**
 * A key rotation:
 * - `announcing`: the current pair is in use, `keyPair` is new. The control plane may list either.
 * - `confirming`: the new pair is in use, `keyPair` is the old one, for a rollback.
 * - `returning`: the rollback is being announced. The control plane may list either, and the new
 *   pair stays in use until the control plane lists the old one.
 */
export interface Rotation {
  readonly phase: (typeof rotationPhases)[number];
  /** The pair that is not in use. */
  readonly keyPair: KeyPair;
  /** The proof of the new pair. Null if the host has no identity. */
  readonly proof: KeyProof | null;
  /** The newer proof of the old pair, once a rollback has started. */
  readonly wayBack: KeyProof | null;
  readonly begunAt: string;
  /**
   * The peers with a session on the old pair, and their latest handshakes, in seconds since the
   * epoch. Any later handshake with one of them confirms the new pair.
   */
  readonly witnesses: readonly ConfirmingPeerKey[];
}

/** A peer with a live session. */
export interface ConfirmingPeerKey {
  readonly publicKey: PublicKey;
  readonly latestHandshake: number;
  /** Identifies the peer if its key changes meanwhile. Absent in a file of an earlier version. */
  readonly peer?: PeerId | undefined;
}

/** The enrolment that was or will be sent. The enrolment key itself is not stored. */
export interface EnrollmentIntent {
  readonly idempotencyKey: string;
  /** SHA-256 of the enrolment key, which identifies a second join with the same key. */
  readonly tokenHash: string;
  readonly name: string;
  readonly type: PeerType;
  readonly endpoint: Endpoint | null;
}

/** The control plane's reply to the enrolment, and the newest map since. */
export interface Membership {
  readonly peer: { readonly id: PeerId; readonly name: string; readonly address: Address };
  /** A bearer token for this peer alone, if the service issues one. */
  readonly accessToken: Secret | null;
  /** A personal token that an operator gave this host, if the service issues no bearer token. */
  readonly personalToken: Secret | null;
  readonly map: NetworkMap;
  /** Other settings in the service's wg-quick text. Absent if there are none. */
  readonly text?: ProvidedRemarks;
}

/** The state of a network whose control plane replied to the enrolment. */
export type Joined = State & { readonly membership: Membership };
