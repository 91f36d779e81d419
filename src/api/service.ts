import type { Report } from '../contract/health.ts';
import type { PeerMessage } from '../contract/network.ts';
import type { PathSignals } from '../contract/paths.ts';
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
  /** True for a host on which cpn runs. */
  readonly followsRelay?: true;
  /** The key with which the host proves its later keys. */
  readonly identity?: IdentityKey;
  /** Proves that the holder of the identity enrols. */
  readonly identityProof?: string;
  /** For the public key, if the identity had another one before. */
  readonly keyProof?: KeyProof;
  readonly secretTag?: string;
  /** For a device that dials only this connector; only for a service that describes it. */
  readonly profile?: { readonly connector: number; readonly routes: readonly Prefix[] };
  /** The host's networks at this service, which refuses a key for one of them with a 409. */
  readonly currentNetworks?: readonly Id[];
  /**
   * How networks at other addresses may list this host. Only digests are sent, so no other service
   * gets a key. A service that lists one refuses a key for that network with a 412.
   */
  readonly currentPeers?: readonly ListedSelf[];
  /** Sent with every attempt as `Idempotency-Key`: a lost reply costs no use of the key. */
  readonly idempotencyKey: string;
}

export interface Enrolled {
  readonly peer: { readonly id: PeerId; readonly name: string; readonly address: Address };
  readonly map: NetworkMap;
  /** A bearer for this peer alone; null if the service gives none. */
  readonly accessToken: Secret | null;
  /** Settings of a wg-quick text; absent for none. */
  readonly text?: ProvidedRemarks;
}

/** How long a reply may be delayed. */
export interface Wait {
  /** A service may wait less. Null requests no wait. */
  readonly seconds: number | null;
  /** Ends the call at once, with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Ends the call after a gateway timeout: Unreachable with `waitEnded`. Else it is repeated. */
  readonly endsWithTimeout?: true;
}

/** Messages of the service to this host. */
export interface MessageBatch {
  readonly messages: readonly PeerMessage[];
  /** For the next request, so that they do not come again; null from a service that sends none. */
  readonly receipt: string | null;
}

export interface MapReading {
  /** Null if the named revision is current. */
  readonly map: NetworkMap | null;
  /** The peers stated as removed since the request's revision; absent without a list. */
  readonly removed?: readonly PeerId[];
  /** True if the service supports waiting, and waited if it could; else the caller polls. */
  readonly waited: boolean;
  /** Set for a whole map that the request named: a service that compares ETags replies 304. */
  readonly isRepeated?: true;
  /** Set if A-IM failed twice, its omission worked, and A-IM failed again: a gateway refuses it. */
  readonly refusesDeltas?: true;
  /** What came in place of a map; absent for nothing. */
  readonly batch?: MessageBatch;
  /** The reply's Date, in milliseconds since 1970; absent without one. */
  readonly servedAt?: number;
  /** The address that answered, if known. */
  readonly from?: Address;
  /** The uid that answered on loopback without TLS; absent if invisible, or elsewhere. */
  readonly listener?: number;
  /** ISO 8601: since when another host has this identity, if reported; absent if none has. */
  readonly clonedSince?: string;
}

export interface PeerDescription {
  readonly name?: string;
  readonly endpoint?: Endpoint | null;
}

/** The operations of a host on the service. All replies are decoded and checked. */
export interface PeerService {
  enroll(request: EnrollmentRequest): Promise<Enrolled>;
  /**
   * The map, if its revision differs from that of `known`; a delta suffices if `known` is a map.
   * With `wait`, the service may delay its reply until there is another revision, and the deadline
   * grows by as much. With `receipt`, the messages of an earlier reply do not come again.
   */
  readMap(
    network: Id,
    token: Secret,
    known: NetworkMap | string | null,
    wait?: Wait,
    receipt?: string | null,
  ): Promise<MapReading>;
  /**
   * Withdraws exactly these routes of a connector, and its relaying if the network's own range is
   * among them; restores all others. Throws CannotWithdraw if the service does not support it,
   * Refused if it refuses.
   */
  withdraw(network: Id, peer: PeerId, token: Secret, prefixes: readonly Prefix[]): Promise<void>;
  /** States whether this connector masquerades. Nothing if the service has no such field. */
  announceMasquerading(network: Id, peer: PeerId, token: Secret, masquerades: boolean): Promise<void>;
  /**
   * Reports the tag of this host's network secret, or none. False if the service has no such
   * operation. A service that ignores unknown fields gives true, but its next map lacks the tag.
   */
  announceSecret(network: Id, peer: PeerId, token: Secret, tag: string | null): Promise<boolean>;
  /**
   * Lists the peer under this public key, with the host's proof; idempotent. False if the service
   * has no such operation. Throws Refused if it refuses.
   */
  changeKey(network: Id, peer: PeerId, token: Secret, publicKey: PublicKey, proof: KeyProof | null): Promise<boolean>;
  /**
   * Changes the name or endpoint (null for none); omitted fields stay. Throws CannotReport if the
   * service ignores it, Refused if it refuses.
   */
  describePeer(network: Id, peer: PeerId, token: Secret, description: PeerDescription): Promise<void>;
  /**
   * Removes the peer. False if the reply does not confirm that, so only the map or a refusal can:
   * the peer is gone, the service has another reply or no removal, or a captive portal answers.
   */
  removePeer(network: Id, peer: PeerId, token: Secret): Promise<boolean>;
  /**
   * Reports what the host observes. Null, and nothing is sent, if the service does not describe it.
   *
   * @param signal ends the call; it then fails with the signal's reason
   */
  report(network: Id, peer: PeerId, token: Secret, report: Report, signal?: AbortSignal): Promise<Reachability | null>;
  /**
   * States facts about direct paths. False, and nothing is sent, if the service does not describe
   * it.
   *
   * @param signal ends the call; it then fails with the signal's reason
   */
  sendPathSignals(network: Id, token: Secret, signals: PathSignals, signal?: AbortSignal): Promise<boolean>;
}

export interface ServiceDescription {
  readonly features: readonly Feature[];
  /** For the next, conditional request; null if the service sends none. */
  readonly etag: string | null;
}

export interface ListeningUser {
  /** The uid. */
  readonly user: number;
  readonly description: string;
  /** The recorded user, for a message; null for none, and for the same one. */
  readonly previousUser: string | null;
  /** True if it is neither root, nor a user of services, nor ours. */
  readonly isLoginUser: boolean;
}

export interface ServiceProbe {
  /** Seconds since the epoch by the service's clock; null if not sent. */
  readonly date: number | null;
  /** Milliseconds from the request to the head of the reply. */
  readonly tookMs: number;
  /** The certificate and its issuers; absent without TLS. */
  readonly certificates?: readonly Certificate[];
  /** The user who answered on loopback without TLS; null if invisible, absent elsewhere. */
  readonly listener?: string | null;
}
