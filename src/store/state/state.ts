import type { PeerType } from '../../contract/peer.ts';
import type { Identity, KeyProof } from '../../core/crypto/identity.ts';
import type { KeyPair, PublicKey } from '../../core/crypto/keys.ts';
import type { Secret } from '../../core/crypto/secret.ts';
import type { PathMtu } from '../../core/health/path-mtu.ts';
import type { OpenPort } from '../../core/host-state/open-port.ts';
import type { Receipt } from '../../core/host-state/receipt.ts';
import type { Feature } from '../../core/map/features.ts';
import type { NetworkMap, PeerFailure, PeerId, ProvidedRemarks } from '../../core/map/model.ts';
import type { Options } from '../../core/map/options.ts';
import type { PeerLabels } from '../../core/names/hosts-label.ts';
import type { Resolved } from '../../core/names/resolved-names.ts';
import type { Address } from '../../core/net/cidr.ts';
import type { Endpoint } from '../../core/net/endpoint.ts';
import type { ServiceAddress } from '../../core/net/service-address.ts';
import type { Pin } from '../../core/pins/match-pins.ts';
import type { KeptOutside } from '../../core/routing/kept-outside.ts';
import type { TunnelledResolver } from '../../core/routing/nested-prefixes.ts';

/** What a host stores of one network. */
export interface State {
  readonly interface: string;
  /** When the join began; of two networks that overlap the earlier one takes precedence. */
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
  /** The features of the service when its description was last read; null before that. */
  readonly features: readonly Feature[] | null;
  /** True while an enrolment may have been carried out whose reply never came, and that the service would carry out again. */
  readonly perhapsEnrolled: boolean;
  readonly enrollment: EnrollmentIntent;
  /** Null before the enrolment was answered. */
  readonly membership: Membership | null;
  readonly options: Options;
  /** False after `cpn down`: the network is joined, and stays down until `cpn up`. */
  readonly enabled: boolean;
  /**
   * Its control plane stated that the network was deleted: when this host received that, in ISO 8601, and whether the network comes up
   * once the control plane has it again. Absent for a network that was not deleted; else `enabled` is false.
   */
  readonly deletion?: { readonly at: string; readonly resumes: boolean };
  readonly resolved: Resolved;
  /** Identifies the newest map that cut this host off and was rolled back; it is not applied again. */
  readonly refused: string | null;
  /** In the order of their ids; saved, so that the wg-quick file and the state agree after a reboot. */
  readonly failed: readonly PeerFailure[];
  /** The path MTU that the daemon measured, where paths do not carry packets of the usual size; else null. */
  readonly pathMtu: PathMtu | null;
  /** True after `cpn drain`: this connector is out of service until an operator puts it back. */
  readonly drained: boolean;
  /**
   * When the service confirmed the map of a network whose map has a longest age, in milliseconds since 1970 by its own clock; not each
   * confirmation is saved. Absent in other networks.
   */
  readonly confirmed?: number;
  /** Those of listed peers in the order of their ids, then those of peers that left, the last to leave first. */
  readonly pins: readonly Pin[];
  /** Addresses in accepted routes that the last pass kept outside the tunnel: a resolver there is not taken for one in the network. */
  readonly keptOutside: readonly KeptOutside[];
  /** Resolvers that this host names and that accepted routes lead to, or led to while they were there. */
  readonly tunnelledResolvers: readonly TunnelledResolver[];
  /** The labels by which the hosts file named the peers of the map; empty where it does not. */
  readonly labels: readonly PeerLabels[];
  readonly receipt: Receipt;
  /** The other part of the receipt, which 0.1.0 does not read: what was opened in ufw and firewalld. */
  readonly openPorts: readonly OpenPort[];
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
  readonly witnesses: readonly ConfirmingPeerKey[];
}

/** A peer with a living session. */
export interface ConfirmingPeerKey {
  readonly publicKey: PublicKey;
  readonly latestHandshake: number;
  /** Identifies it where its own key changes in the meantime; absent in a file of an earlier version. */
  readonly peer?: PeerId | undefined;
}

/** What was or is to be sent. The enrolment key itself is not stored. */
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
  /** A personal token in its place, where the service gives none and an operator gave one to this host. */
  readonly personalToken: Secret | null;
  readonly map: NetworkMap;
  /** Other settings in the ready wg-quick text of the enrolment; absent where there are none. */
  readonly text?: ProvidedRemarks;
}

/** The state of a network whose control plane answered the enrolment. */
export type Joined = State & { readonly membership: Membership };
