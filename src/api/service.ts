import type { AuditEntry as AuditEntryReply } from '../contract/audit.ts';
import type { OpenSession as OpenSessionReply } from '../contract/auth.ts';
import type { CreateEnrollmentKey, EnrollmentKey, NewEnrollmentKey } from '../contract/enrollment-key.ts';
import type { Event as EventReply } from '../contract/event.ts';
import type { PathState, PeerHealth as PeerHealthReply, Report } from '../contract/health.ts';
import type { PeerMessage } from '../contract/message.ts';
import type { ChangeNetwork, CreateNetwork, NetworkSummary as NetworkSummaryReply } from '../contract/network.ts';
import type { ChangePeer, Peer as PeerReply, PeerType } from '../contract/peer.ts';
import type { CreatePersonalToken, PersonalToken } from '../contract/personal-token.ts';
import type { PendingHost as PendingHostReply } from '../contract/removal.ts';
import type { ChangeUser, CreateUser as CreateUserRequest, User as UserReply } from '../contract/user.ts';
import type { IdentityKey, KeyProof } from '../core/crypto/identity.ts';
import type { PublicKey } from '../core/crypto/keys.ts';
import type { Secret } from '../core/crypto/secret.ts';
import type { ConnectorProfile } from '../core/export/device-profile.ts';
import type { Reachability } from '../core/health/compose-report.ts';
import type { AdminFeature, Feature } from '../core/map/features.ts';
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
  /** The networks of this service that the host is in: it refuses a key for one of them with a 409. */
  readonly currentNetworks?: readonly Id[];
  /**
   * What networks of services at other addresses may list of this host. Digests of it are sent: a service that lists one of them refuses
   * a key for that network with a 412, and another one learns no key.
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
  /** A timeout of a gateway in the wait ends the call, as an Unreachable with `waitEnded`; else the attempt is repeated. */
  readonly endsWithTimeout?: true;
}

export interface MapReading {
  /** Null while the revision is the one named. */
  readonly map: NetworkMap | null;
  /** Peers that the service states to be gone since the revision of the request; absent where it lists none. */
  readonly removed?: readonly PeerId[];
  /** The service knows how to wait, and did so as far as there was anything to wait for; else it is to be polled. */
  readonly waited: boolean;
  /** The reply is a whole map, and the one that the request named: a service that compares ETags replies with a 304. */
  readonly isRepeated?: true;
  /** A gateway refuses changes alone: the request failed with A-IM twice, worked without it, and failed with it again. */
  readonly refusesDeltas?: true;
  /** Messages for this host, which came instead of a map; absent for none. */
  readonly messages?: readonly PeerMessage[];
  /** The Date of the reply, in milliseconds since 1970; absent where it has none. */
  readonly servedAt?: number;
  /** The address at which the service answered, where it is known. */
  readonly from?: Address;
  /** The user (uid) whose program answered on loopback without TLS; absent where it is not visible, and for other addresses. */
  readonly listener?: number;
  /** ISO 8601: since when another host has the identity of this one, as far as the service knows; absent where none has. */
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
   * The network's map, if its revision is another than that of `known`: of the map that the host has, or the revision alone. To
   * a map the service may tell its changes alone. With `wait` the service is asked to hold its answer until there is another
   * revision; the deadline of the call is put off by as long.
   */
  readMap(network: Id, token: Secret, known: NetworkMap | string | null, wait?: Wait): Promise<MapReading>;
  /**
   * Takes exactly these routes of a connector out of service, and its relaying where the network's own range is among them; what was
   * withdrawn before and is not named is put back. Throws CannotWithdraw where the service does not know how, Refused where it says no.
   */
  withdraw(network: Id, peer: PeerId, token: Secret, prefixes: readonly Prefix[]): Promise<void>;
  /**
   * Has the service list this tag of the host's network secret, or none. False where it says that it knows no such thing; one that
   * ignores what it does not know says nothing, and its next map shows it.
   */
  announceSecret(network: Id, peer: PeerId, token: Secret, tag: string | null): Promise<boolean>;
  /**
   * Has the service list the peer under this public key, with the host's own word for it; the same again changes nothing. False where the
   * service knows no such thing. Throws Refused where it says no.
   */
  changeKey(network: Id, peer: PeerId, token: Secret, publicKey: PublicKey, proof: KeyProof | null): Promise<boolean>;
  /**
   * Has the service list the peer under this name or endpoint, null for none; what is left out stays. Throws CannotReport where the service
   * takes no notice of it, Refused where it says no.
   */
  describePeer(network: Id, peer: PeerId, token: Secret, description: PeerDescription): Promise<void>;
  /**
   * Takes the peer out of the network. False where the answer does not confirm that, and only the map, or that it is refused, can: the
   * peer is gone already, the service says it in a form of its own or cannot remove peers, or a captive portal answers.
   */
  removePeer(network: Id, peer: PeerId, token: Secret): Promise<boolean>;
  /**
   * Reports what the host observes. Null where the service describes no such operation, and nothing is sent to it.
   *
   * @param signal ends the call; it then fails with the signal's reason
   */
  report(network: Id, peer: PeerId, token: Secret, report: Report, signal?: AbortSignal): Promise<Reachability | null>;
}

/** `Whole`, with null for the fields in `Gaps` that a service leaves out. */
type WithGaps<Whole, Gaps extends keyof Whole> = Omit<Whole, Gaps> & { readonly [Gap in Gaps]: Whole[Gap] | null };

/** `Whole`, by whatever id the service gave. */
type Named<Whole extends { readonly id: unknown }> = Omit<Whole, 'id'> & { readonly id: Id };

/** The contract's resources as an administrator gets them, in the contract's names whatever the service calls them. */
export type NetworkSummary = WithGaps<Named<NetworkSummaryReply>, 'revision'>;
export type NetworkPeer = WithGaps<Omit<PeerReply, 'id' | 'profile'>, 'created_at'> & {
  readonly id: PeerId;
  readonly profile?: ConnectorProfile;
};
export type Network = NetworkSummary & {
  readonly peers: NetworkPeer[];
  /** The entries of its list that are no peers, and why; not there where all are. */
  readonly skipped_peers?: { readonly id: PeerId | null; readonly name: string | null; readonly reason: string }[];
};
export type NewKey = WithGaps<Named<NewEnrollmentKey>, 'id' | 'expires_at'>;
export type Key = WithGaps<Named<EnrollmentKey>, 'max_uses' | 'uses' | 'expires_at'>;
export type Session = { readonly token: Secret; readonly expiresAt: string | null };
/** Who a token stands for, as far as the service says; that it answers is proof enough of the token. */
export interface Profile {
  readonly email: string | null;
  readonly role: string | null;
  readonly organization: { readonly id: Id | null; readonly name: string | null } | null;
}

export type User = Named<UserReply>;
/** With the enrolment keys that the change revoked; null where none were to be revoked. */
export type ChangedUser = User & { readonly keysRevoked: readonly KeyOfNetwork[] | null };
export type CreateUser = Omit<CreateUserRequest, 'password' | 'current_password'> & { readonly password: Secret };
/** A session of the caller, without its token. */
export type OpenSession = Named<OpenSessionReply>;
/** A personal token of the caller, without its value. */
export type Token = Named<PersonalToken>;
/** A personal token just made, with its value, which is shown this once. */
export type NewToken = Token & { readonly access_token: Secret };
export type AuditEntry = Named<Omit<AuditEntryReply, 'actor' | 'target'>> & {
  readonly actor: Party<AuditEntryReply['actor']>;
  readonly target: Party<AuditEntryReply['target']>;
};
type Party<Whole extends { readonly id: unknown }> = Omit<Whole, 'id'> & { readonly id: Id | null };
/** Which part of the audit: the newest entries, or those before the one with the id `before`. */
export type AuditPage = { readonly before?: Id; readonly limit?: number };

/** What hosts observe of a peer, as far as the service says it. */
export type PeerHealth = Named<
  Pick<PeerHealthReply, 'id' | 'state' | 'reachable_by' | 'witnesses' | 'last_seen' | 'version'>
> & {
  /** How it reaches others, by its own report. */
  readonly paths: readonly { readonly peer: Id; readonly path: PathState }[];
};

/** A host that has not applied the last removal of a peer. */
export type PendingHost = Named<PendingHostReply>;

/** Something that happened in a network. A later service may have further types. */
export type Event = Omit<Named<EventReply>, 'type' | 'network' | 'peer'> & {
  readonly type: string;
  readonly network: Id;
  readonly peer: { readonly id: Id | null; readonly name: string } | null;
};
/** Which events, oldest first: the newest ones, or those after the one with the id `after`, for which the service may wait. */
export type EventPage = { readonly after?: Id; readonly limit?: number; readonly wait?: Wait };

/** What a service's description of itself comes down to. */
export interface ServiceDescription {
  readonly features: readonly Feature[];
  /** By which the next reading may find it unchanged; null where the service serves no such thing. */
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
  /** The user whose program answered on loopback without TLS; null where it is not visible, absent for other addresses. */
  readonly listener?: string | null;
}

/** What a change of a password made useless, and what it left; null where the service does not report it. */
export interface PasswordChange {
  readonly sessionsEnded: number | null;
  readonly tokensRevoked: readonly Token[] | null;
  /** The new session, after the change ended the session of the call; null if that session goes on. */
  readonly session: Session | null;
  /** Users that the caller made or gave a role. */
  readonly usersMade: readonly User[] | null;
  /** Enrolment keys that the caller made and that hosts can use. */
  readonly keysMade: readonly KeyOfNetwork[] | null;
}

/** An enrolment key in a list of several networks. */
export interface KeyOfNetwork {
  readonly id: Id;
  readonly name: string;
  readonly network: { readonly id: Id; readonly name: string };
}

/** The operations of an administrator on the service. All but `login` need its token. */
export interface AdminService {
  login(email: string, password: Secret, device: string): Promise<Session>;
  logout(): Promise<void>;
  profile(): Promise<Profile>;
  /** Whether the service describes an extension; what it does not describe it must not be asked for. */
  describes(feature: AdminFeature): Promise<boolean>;
  listNetworks(): Promise<NetworkSummary[]>;
  readNetwork(network: Id): Promise<Network>;
  createNetwork(network: CreateNetwork): Promise<Network>;
  /** Sets the fields given; the others stay as they are. */
  updateNetwork(network: Id, changes: ChangeNetwork): Promise<Network>;
  deleteNetwork(network: Id): Promise<void>;
  createKey(network: Id, key: CreateEnrollmentKey): Promise<NewKey>;
  /** The keys of a network that were not revoked, without their tokens; a service may leave out those of no use, unless all are asked for. */
  listKeys(network: Id, which?: { readonly all: boolean }): Promise<Key[]>;
  /** Makes a key useless from now on; hosts that joined with it stay. */
  revokeKey(network: Id, key: Id): Promise<void>;
  /** Sets the fields given; null takes the endpoint, or the limit on routes, away. */
  updatePeer(network: Id, peer: PeerId, changes: ChangePeer): Promise<NetworkPeer>;
  /** The suspended and expired peers of a network; none from a service that does not describe that there may be some. */
  listPeersOut(network: Id): Promise<NetworkPeer[]>;
  /** Takes a peer out of its network. One that is not there is a Refused 404: the id may have been a slip. */
  removePeer(network: Id, peer: PeerId): Promise<void>;
  listUsers(): Promise<User[]>;
  /** Makes a user; `own` is the caller's password, which proves the caller where its login is not recent. */
  createUser(user: CreateUser, own?: Secret): Promise<User>;
  /**
   * Removes a user with all its sessions and tokens, and unless `keepsKeys` is set with the usable enrolment keys that it made. Returns
   * these; null from a service that does not report them.
   */
  deleteUser(user: Id, options?: { readonly keepsKeys: boolean }): Promise<readonly KeyOfNetwork[] | null>;
  /** Sets the fields given; the others stay as they are. To raise a role takes the same proof as {@link createUser}. */
  updateUser(user: Id, changes: Omit<ChangeUser, 'current_password'>, own?: Secret): Promise<ChangedUser>;
  /**
   * Changes the caller's own password, and ends its sessions. `keepsTokens` is sent only if set: a service of before it keeps them
   * in any case.
   */
  changePassword(current: Secret, next: Secret, options?: { readonly keepsTokens: boolean }): Promise<PasswordChange>;
  /** The sessions of the caller; null from a service that does not list them. */
  listSessions(): Promise<OpenSession[] | null>;
  deleteSession(session: Id): Promise<void>;
  /** The personal tokens of the caller. */
  listTokens(): Promise<Token[]>;
  /** Makes a personal token; `password` proves the caller where its login is not recent. */
  createToken(token: Omit<CreatePersonalToken, 'password'>, password?: Secret): Promise<NewToken>;
  deleteToken(token: Id): Promise<void>;
  /** What was done in the organization, newest first: up to `limit` entries, or as many as the service gives. */
  readAudit(page?: AuditPage): Promise<AuditEntry[]>;
  /** What the hosts of a network observe of each other; null from a service that does not describe that it collects it. */
  readHealth(network: Id): Promise<PeerHealth[] | null>;
  /**
   * Which hosts of a network have not applied the last removal of a peer. Waits up to so many seconds for those that may do so soon.
   * Null from a service that does not describe that it notes this.
   */
  readRemovals(network: Id, waitSeconds: number): Promise<PendingHost[] | null>;
  /**
   * A page of the events of a network. A call that waits makes one attempt, and its caller goes on.
   *
   * `waited`: the service supports waiting; else it is to be polled.
   */
  readEvents(network: Id, page?: EventPage): Promise<{ readonly events: Event[]; readonly waited: boolean }>;
}
