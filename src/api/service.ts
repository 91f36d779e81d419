import type { Role } from '../contract/auth.ts';
import type { NewEnrollmentKey } from '../contract/enrollment-key.ts';
import type { CreateNetwork, Network, NetworkSummary } from '../contract/network.ts';
import type { PeerType } from '../contract/peer.ts';
import type { Address } from '../core/cidr.ts';
import type { Endpoint } from '../core/endpoint.ts';
import type { PublicKey } from '../core/keys.ts';
import type { NetworkMap, PeerId } from '../core/model.ts';
import type { Secret } from '../core/secret.ts';

/** Where a control plane is, and what we may send it over plain http. */
export interface ServiceAddress {
  /** The base address, without a trailing slash. */
  readonly url: string;
  /** Plain http beyond loopback, because somebody said so. */
  readonly insecureHttp: boolean;
}

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

/** What a host asks of the service, decoded and checked: nothing comes through that is not of its type. */
export interface PeerService {
  enroll(request: EnrollmentRequest): Promise<Enrolled>;
  /** The network's map, or null when its revision still is `revision`. */
  readMap(network: number, token: Secret, revision: string | null): Promise<NetworkMap | null>;
  /** Takes the peer out of the network. One that is gone already is no error. */
  removePeer(network: number, peer: PeerId, token: Secret): Promise<void>;
}

/** What an administrator asks of the service. */
export interface AdminService {
  login(email: string, password: Secret, device: string): Promise<{ token: Secret; expiresAt: string }>;
  logout(): Promise<void>;
  profile(): Promise<{ email: string; role: Role; organization: { id: number; name: string } }>;
  listNetworks(): Promise<NetworkSummary[]>;
  readNetwork(network: number): Promise<Network>;
  createNetwork(network: CreateNetwork): Promise<Network>;
  deleteNetwork(network: number): Promise<void>;
  createKey(
    network: number,
    key: { name: string; max_uses: number; expires_in_hours: number },
  ): Promise<NewEnrollmentKey>;
  removePeer(network: number, peer: number): Promise<void>;
}
