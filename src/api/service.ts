import type { Report } from '../contract/health.ts';
import type { PeerMessage } from '../contract/network.ts';
import type { PeerType } from '../contract/peer.ts';
import type { IdentityKey, KeyProof } from '../core/crypto/identity.ts';
import type { PublicKey } from '../core/crypto/keys.ts';
import type { Secret } from '../core/crypto/secret.ts';
import type { Reachability } from '../core/health/report/compose-report.ts';
import type { Feature } from '../core/map/features.ts';
import type { Id, NetworkMap, PeerId, ProvidedRemarks } from '../core/map/model.ts';
import type { ListedSelf } from '../core/map/own-peer.ts';
import type { Address, Prefix } from '../core/net/cidr.ts';
import type { Endpoint } from '../core/net/endpoint.ts';
import type { Certificate } from '../core/tls/certificate.ts';

export interface EnrollmentRequest {
  readonly token: Secret;
  readonly name: string;
  readonly type: PeerType;
  readonly publicKey: PublicKey;
  readonly endpoint: Endpoint | null;
  /** What the host will prove its later keys with. */
  readonly identity?: IdentityKey;
  /** That this enrolment is by the holder of the identity. */
  readonly identityProof?: string;
  /** Of the public key, where the identity had another one before. */
  readonly keyProof?: KeyProof;
  readonly secretTag?: string;
  /** Of a device that dials this connector alone; only for a service that describes it. */
  readonly profile?: { readonly connector: number; readonly routes: readonly Prefix[] };
  /**
   * The networks of this service that the host is in: it refuses a key for one of them with a 409.
   */
  readonly currentNetworks?: readonly Id[];
  /**
   * What networks of services at other addresses may list of this host. Digests of it are sent: a
   * service that lists one of them refuses a key for that network with a 412, and another one
   * learns no key.
   */
  readonly currentPeers?: readonly ListedSelf[];
  /** Sent as `Idempotency-Key` with every attempt, so that a lost reply costs no use of the key. */
  readonly idempotencyKey: string;
}

export interface Enrolled {
  readonly peer: { readonly id: PeerId; readonly name: string; readonly address: Address };
  readonly map: NetworkMap;
  /** A bearer for this peer alone; null from a service that gives none. */
  readonly accessToken: Secret | null;
  /** Settings of a ready wg-quick text; absent where the service gave none. */
  readonly text?: ProvidedRemarks;
}

/** How long an answer may be held back. */
export interface Wait {
  /** A service may wait for less; null for one that is not asked to wait. */
  readonly seconds: number | null;
  /** Ends the call at once; it then fails with the signal's reason. */
  readonly signal?: AbortSignal;
  /**
   * A timeout of a gateway in the wait ends the call, as an Unreachable with `waitEnded`; else the
   * attempt is repeated.
   */
  readonly endsWithTimeout?: true;
}

export interface MapReading {
  /** Null while the revision is the one named. */
  readonly map: NetworkMap | null;
  /**
   * Peers that the service states to be gone since the revision of the request; absent where it
   * lists none.
   */
  readonly removed?: readonly PeerId[];
  /**
   * True if the service supports waiting, and waited if there was anything to wait for. Otherwise
   * the caller polls.
   */
  readonly waited: boolean;
  /**
   * The reply is a whole map, and the one that the request named: a service that compares ETags
   * replies with a 304.
   */
  readonly isRepeated?: true;
  /**
   * A gateway refuses changes alone: the request failed with A-IM twice, worked without it, and
   * failed with it again.
   */
  readonly refusesDeltas?: true;
  /** Messages for this host, which came instead of a map; absent for none. */
  readonly messages?: readonly PeerMessage[];
  /** The Date of the reply, in milliseconds since 1970; absent where it has none. */
  readonly servedAt?: number;
  /** The address at which the service answered, where it is known. */
  readonly from?: Address;
  /**
   * The user (uid) whose program answered on loopback without TLS; absent where it is not visible,
   * and for other addresses.
   */
  readonly listener?: number;
  /**
   * ISO 8601: since when another host has the identity of this one, as far as the service reports
   * it; absent if no other host has.
   */
  readonly clonedSince?: string;
}

/** What a host may change of its own peer. */
export interface PeerDescription {
  readonly name?: string;
  readonly endpoint?: Endpoint | null;
}

/** The operations of a host on the service. All replies are decoded and checked. */
export interface PeerService {
  enroll(request: EnrollmentRequest): Promise<Enrolled>;
  /**
   * The network's map, if its revision is another than that of `known`: of the map that the host
   * has, or the revision alone. To a map the service may tell its changes alone. With `wait` the
   * service is asked to hold its answer until there is another revision; the deadline of the call
   * is put off by as long.
   */
  readMap(network: Id, token: Secret, known: NetworkMap | string | null, wait?: Wait): Promise<MapReading>;
  /**
   * Takes exactly these routes of a connector out of service, and its relaying where the network's
   * own range is among them; what was withdrawn before and is not named is put back. Throws
   * CannotWithdraw if the service does not support it, Refused if it refuses.
   */
  withdraw(network: Id, peer: PeerId, token: Secret, prefixes: readonly Prefix[]): Promise<void>;
  /**
   * Has the service list this tag of the host's network secret, or none. False if it
   * reports that it has no such operation. A service that ignores unknown fields returns true; its
   * next map lacks the tag.
   */
  announceSecret(network: Id, peer: PeerId, token: Secret, tag: string | null): Promise<boolean>;
  /**
   * Has the service list the peer under this public key, with the host's own word for it; the same
   * again changes nothing. False if the service has no such operation. Throws Refused if it
   * refuses.
   */
  changeKey(network: Id, peer: PeerId, token: Secret, publicKey: PublicKey, proof: KeyProof | null): Promise<boolean>;
  /**
   * Has the service list the peer under this name or endpoint, null for none; what is left out
   * stays. Throws CannotReport if the service ignores it, Refused if it refuses.
   */
  describePeer(network: Id, peer: PeerId, token: Secret, description: PeerDescription): Promise<void>;
  /**
   * Takes the peer out of the network. False where the answer does not confirm that, and only the
   * map, or that it is refused, can: the peer is gone already, the service answers in another form
   * or cannot remove peers, or a captive portal answers.
   */
  removePeer(network: Id, peer: PeerId, token: Secret): Promise<boolean>;
  /**
   * Reports what the host observes. Null where the service describes no such operation, and nothing
   * is sent to it.
   *
   * @param signal ends the call; it then fails with the signal's reason
   */
  report(network: Id, peer: PeerId, token: Secret, report: Report, signal?: AbortSignal): Promise<Reachability | null>;
}

/** What a service's description of itself comes down to. */
export interface ServiceDescription {
  readonly features: readonly Feature[];
  /**
   * By which the next reading may find it unchanged; null where the service serves no such thing.
   */
  readonly etag: string | null;
}

/** The user whose program listens at the address of a control plane. */
export interface ListeningUser {
  /** The uid. */
  readonly user: number;
  /** For a message. */
  readonly description: string;
  /** The user who is remembered, for a message; null for none, and for the same one. */
  readonly previousUser: string | null;
  /** It is neither root, nor a user of services, nor that of this process. */
  readonly isLoginUser: boolean;
}

/** Facts of a reply in addition to its content. */
export interface ServiceProbe {
  /** Seconds since the epoch by its own clock; null where it does not tell. */
  readonly date: number | null;
  /** Milliseconds from the question to the head of the answer. */
  readonly tookMs: number;
  /** The certificate of the service and its issuers; absent without TLS. */
  readonly certificates?: readonly Certificate[];
  /**
   * The user whose program answered on loopback without TLS; null where it is not visible, absent
   * for other addresses.
   */
  readonly listener?: string | null;
}
