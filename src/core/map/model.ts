import type { PeerType } from '../../contract/peer.ts';
import type { IdentityKey, KeyProof } from '../crypto/identity.ts';
import type { PublicKey } from '../crypto/keys.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Address, Prefix } from '../net/cidr.ts';
import type { Endpoint } from '../net/endpoint.ts';

/** Every kind of peer, in the contract's words. */
export const peerTypes = ['connector', 'admin_device', 'origin'] as const satisfies readonly PeerType[];

/** What a service calls one thing by, and nothing else. Ours are integers; another service may give strings. */
export type Id = number | string;

/** The service's name for a peer. */
export type PeerId = Id;

/** A host in a private network, as the control plane describes it. */
export interface Peer {
  readonly id: PeerId;
  readonly name: string;
  readonly type: PeerType;
  readonly publicKey: PublicKey;
  readonly address: Address;
  readonly endpoint: Endpoint | null;
  /** The network's routes that this connector serves; null means all of them. */
  readonly routes: readonly Prefix[] | null;
  /** What this connector took out of service itself: routes, and the network's range where it is no relay for now. */
  readonly withdrawn: readonly Prefix[];
  /** What the host proves its keys with; not there where it, or the service, knows no such thing. */
  readonly identity?: IdentityKey;
  /** The host's own word for its public key, once that is another than the one it enrolled with. */
  readonly proof?: KeyProof;
  /** By which hosts with the same network secret know each other; it tells nothing of the secret. */
  readonly secretTag?: string;
  /** There where the service gave a ready wg-quick text instead of telling who is in the network. */
  readonly given?: ProvidedTunnel;
  /** The label by which hosts resolve it, where it does not follow from the name. */
  readonly label?: string;
  /** When a connector began to serve, in milliseconds since 1970; not there where the service says no such thing. */
  readonly servingSince?: number;
  /** What an admin ranks connectors by: the higher one serves. 0 where it is not there. */
  readonly priority?: number;
  /** When the peer expires, in milliseconds since 1970; not there where it does not, or the service says no such thing. */
  readonly expiresAt?: number;
  /** There where the peer dials a connector alone, as a device with a profile does: all others reach it through a connector. */
  readonly via?: ViaConnectors;
  /** True of this host where the service never listed it: it is in the map by its enrolment alone. */
  readonly unlisted?: true;
}

/** How a peer is reached that dials a connector alone. */
export interface ViaConnectors {
  /** The connector that it dials; null where the service names none. */
  readonly connector: PeerId | null;
}

/** What a ready wg-quick text says of a peer in addition to its key and endpoint; used as given, where the guard allows it. */
export interface ProvidedTunnel {
  readonly allowedIps: readonly Prefix[];
  readonly presharedKey: Secret | null;
  /** Seconds between keepalives, or null for none. */
  readonly keepalive: number | null;
}

/** A peer that this host saw fail, and avoids where there is another way. */
export interface PeerFailure {
  readonly peer: PeerId;
  /** It is heard again, and trusted again after a while: better than one that is silent, not as good as one that was well. */
  readonly back: boolean;
  /** Among silent connectors the highest number is of the one heard last; absent for one that never answered. */
  readonly heard?: number;
}

/** A network and all its peers at one revision, as a host receives it. */
export interface NetworkMap {
  /** Null where the service sent none: then the map cannot be read again. */
  readonly id: Id | null;
  readonly name: string;
  /** This host's own address alone, where the service did not tell the range. */
  readonly cidr: Prefix;
  readonly routes: readonly Prefix[];
  /** Seconds for which connectors may use the map without another confirmation; absent for no bound. */
  readonly maxAge?: number;
  /** A random value that stays with the network, which only its control plane and its peers have; absent from other services. */
  readonly nonce?: string;
  /** The ETag under which the service served it, strong or weak; null where it has none. */
  readonly revision: string | null;
  readonly peers: readonly Peer[];
  /** Entries of the service that are not usable; absent where there are none. */
  readonly skipped?: readonly SkippedPeer[];
}

/** An entry of a network's list that is no peer, as far as it can be read. */
export interface SkippedPeer {
  readonly id: PeerId | null;
  readonly name: string | null;
  readonly publicKey: string | null;
  readonly address: string | null;
  /** What is wrong with it, by the name of the field; never a value. */
  readonly reason: string;
}

/** What a ready wg-quick text says in addition to this host's own settings. */
export interface ProvidedRemarks {
  /** Name servers and search domains. */
  readonly dns: readonly string[];
  /** What of it is not used, a clause each. */
  readonly remarks: readonly string[];
}

/** Orders ids so that every host orders them alike: numbers by size, before strings by code unit. */
export function comparePeerIds(a: Id, b: Id): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a !== typeof b) return typeof a === 'number' ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}
