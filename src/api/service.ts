import type { Profile as ProfileReply } from '../contract/auth.ts';
import type { CreateEnrollmentKey, NewEnrollmentKey } from '../contract/enrollment-key.ts';
import type { CreateNetwork, NetworkSummary as NetworkSummaryReply } from '../contract/network.ts';
import type { Peer as PeerReply, PeerType } from '../contract/peer.ts';
import type { Address } from '../core/cidr.ts';
import type { Endpoint } from '../core/endpoint.ts';
import type { PublicKey } from '../core/keys.ts';
import type { NetworkMap, PeerId } from '../core/model.ts';
import type { Secret } from '../core/secret.ts';

export interface EnrollmentRequest {
  readonly token: Secret;
  readonly name: string;
  readonly type: PeerType;
  readonly publicKey: PublicKey;
  readonly endpoint: Endpoint | null;
  /** Sent as `Idempotency-Key` with every attempt, so that a lost reply costs no use of the key. */
  readonly idempotencyKey: string;
}

export interface Enrolled {
  readonly peer: { readonly id: PeerId; readonly name: string; readonly address: Address };
  readonly map: NetworkMap;
  /** A bearer for this peer alone; null from a service that gives none. */
  readonly accessToken: Secret | null;
}

/** How long an answer may be held back. */
export interface Wait {
  /** A service may wait for less. */
  readonly seconds: number;
  /** Ends the call at once; it then fails with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface MapReading {
  /** Null while the revision is the one named. */
  readonly map: NetworkMap | null;
  /** The service knows how to wait, and did so as far as there was anything to wait for; else it is to be polled. */
  readonly waited: boolean;
}

/** What a host asks of the service, decoded and checked: nothing comes through that is not of its type. */
export interface PeerService {
  enroll(request: EnrollmentRequest): Promise<Enrolled>;
  /**
   * The network's map, if its revision is another than `revision`. With `wait` the service is asked to hold its answer
   * until that is so; the deadline of the call is put off by as long.
   */
  readMap(network: number, token: Secret, revision: string | null, wait?: Wait): Promise<MapReading>;
  /** Takes the peer out of the network. One that is gone already is no error. */
  removePeer(network: number, peer: PeerId, token: Secret): Promise<void>;
}

/** `Whole`, from a service that need not tell the fields in `Gaps`: they are null then. */
type Told<Whole, Gaps extends keyof Whole> = Omit<Whole, Gaps> & { readonly [Gap in Gaps]: Whole[Gap] | null };

/** The contract's resources as an administrator gets them, in the contract's names whatever the service calls them. */
export type NetworkSummary = Told<NetworkSummaryReply, 'revision'>;
type NetworkPeer = Told<Omit<PeerReply, 'id'>, 'created_at'> & { readonly id: PeerId };
export type Network = NetworkSummary & { readonly peers: NetworkPeer[] };
export type NewKey = Told<NewEnrollmentKey, 'id' | 'expires_at'>;
export type Session = { readonly token: Secret; readonly expiresAt: string | null };
export type Profile = Pick<ProfileReply, 'email' | 'role' | 'organization'>;

/** What an administrator asks of the service. All but `login` need the token that it gave. */
export interface AdminService {
  login(email: string, password: Secret, device: string): Promise<Session>;
  logout(): Promise<void>;
  profile(): Promise<Profile>;
  listNetworks(): Promise<NetworkSummary[]>;
  readNetwork(network: number): Promise<Network>;
  createNetwork(network: CreateNetwork): Promise<Network>;
  deleteNetwork(network: number): Promise<void>;
  createKey(network: number, key: CreateEnrollmentKey): Promise<NewKey>;
  /** Takes a peer out of its network. One that is not there is a Refused 404: the id may have been a slip. */
  removePeer(network: number, peer: PeerId): Promise<void>;
}
