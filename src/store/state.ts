import type { PeerType } from '../contract/peer.ts';
import type { Address } from '../core/cidr.ts';
import type { Endpoint } from '../core/endpoint.ts';
import type { Feature } from '../core/features.ts';
import type { Identity, KeyProof } from '../core/identity.ts';
import type { KeyPair, PublicKey } from '../core/keys.ts';
import type {
  Failure,
  HeldLabels,
  NetworkMap,
  Options,
  PeerId,
  Pin,
  ServiceAddress,
  TextRemarks,
} from '../core/model.ts';
import type { PathMtu } from '../core/path-mtu.ts';
import type { Receipt } from '../core/receipt.ts';
import type { Resolved } from '../core/resolved.ts';
import type { Secret } from '../core/secret.ts';

/** Everything that a host remembers of one network. */
export interface State {
  readonly interface: string;
  /** When the join began; of two networks that overlap the earlier one has the right of way. */
  readonly createdAt: string;
  readonly keyPair: KeyPair;
  /** When the key pair was made, and the serial under which this host proved it; 0 for the pair that it enrolled with. */
  readonly keySince: string;
  readonly keySerial: number;
  /** Null in a network joined before there were identities. */
  readonly identity: Identity | null;
  /** A change of keys that was begun and not ended yet. */
  readonly rotation: Rotation | null;
  /** The bytes in base64 of which each pair of peers gets its preshared key; null without a network secret. */
  readonly networkSecret: Secret | null;
  readonly service: ServiceAddress;
  /** What the service described when its description was last read; null until it could be. */
  readonly features: readonly Feature[] | null;
  /** True while an enrolment may have been carried out whose reply never came, and that the service would carry out anew. */
  readonly perhapsEnrolled: boolean;
  readonly enrollment: EnrollmentIntent;
  /** Null until the control plane answered. */
  readonly membership: Membership | null;
  readonly options: Options;
  /** False after `cpn down`: the network is joined, and stays down until `cpn up`. */
  readonly enabled: boolean;
  readonly resolved: Resolved;
  /** What the newest map said that was tried, cut this host off and was taken back; it is not tried again. */
  readonly refused: string | null;
  /** In the order of their ids; saved, so that the wg-quick file and what is known agree after a reboot. */
  readonly failed: readonly Failure[];
  /** What the daemon measured of paths that do not carry packets of the usual size; null where it found none. */
  readonly pathMtu: PathMtu | null;
  /** True after `cpn drain`: this connector is out of service until somebody puts it back. */
  readonly drained: boolean;
  /** Those of listed peers in the order of their ids, then those of peers that left, the last to leave first. */
  readonly pins: readonly Pin[];
  /** The labels by which the hosts file named the peers of the map; empty where it does not. */
  readonly labels: readonly HeldLabels[];
  readonly receipt: Receipt;
}

/** How far a change of keys has come. */
export const rotationPhases = ['announcing', 'confirming', 'returning'] as const;

/**
 * A change of keys. While `announcing` the present pair is in use, and the other one is new: the control plane may list either.
 * While `confirming` the new pair is the present one, and the other is kept for the way back. While `returning` the way back is
 * being announced: the control plane may list either, and the new pair is in use until it lists the old one.
 */
export interface Rotation {
  readonly phase: (typeof rotationPhases)[number];
  /** The pair that is not in use. */
  readonly keyPair: KeyPair;
  /** That of the new pair; null where the host has no identity. */
  readonly proof: KeyProof | null;
  /** The later one of the old pair, once it is on its way back. */
  readonly wayBack: KeyProof | null;
  readonly begunAt: string;
  /** Who answered to the old pair, and when last, in seconds since the epoch: any later handshake of theirs confirms the new one. */
  readonly witnesses: readonly Witness[];
}

/** A peer with a living session. */
export interface Witness {
  readonly publicKey: PublicKey;
  readonly latestHandshake: number;
  /** By which it is known where its own key changes meanwhile; absent in a file of an earlier version. */
  readonly peer?: PeerId | undefined;
}

/** What was or is to be sent. The enrolment key itself is kept by whoever gave it. */
export interface EnrollmentIntent {
  readonly idempotencyKey: string;
  /** SHA-256 of the enrolment key, by which a second join with it is known. */
  readonly tokenHash: string;
  readonly name: string;
  readonly type: PeerType;
  readonly endpoint: Endpoint | null;
}

/** What the control plane answered, and the newest map since. */
export interface Membership {
  readonly peer: { readonly id: PeerId; readonly name: string; readonly address: Address };
  /** A bearer for this peer alone, where the service gives one. */
  readonly accessToken: Secret | null;
  /** A person's token that stands in for it, where the service gives none and somebody let this host have one. */
  readonly personalToken: Secret | null;
  readonly map: NetworkMap;
  /** What the ready wg-quick text of the enrolment said beside; not there where it said nothing, or there was none. */
  readonly text?: TextRemarks;
}

/** The state of a network whose control plane answered the enrolment. */
export type Joined = State & { readonly membership: Membership };
