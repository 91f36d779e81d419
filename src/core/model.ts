import type { PeerType } from '../contract/peer.ts';
import { type Address, maskPrefix, type Prefix } from './cidr.ts';
import type { Endpoint, SocketEndpoint } from './endpoint.ts';
import type { IdentityKey, KeyProof } from './identity.ts';
import type { PublicKey } from './keys.ts';
import type { ProbeTarget } from './probe-target.ts';
import type { Secret } from './secret.ts';

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
  readonly given?: GivenTunnel;
  /** When a connector began to serve, in milliseconds since 1970; not there where the service says no such thing. */
  readonly servingSince?: number;
  /** What an admin ranks connectors by: the higher one serves. 0 where it is not there. */
  readonly priority?: number;
  /** True of this host where the service never listed it: it is in the map by its enrolment alone. */
  readonly unlisted?: true;
}

/** What a ready wg-quick text says of a peer beside its key and endpoint; used as given, as far as the guard lets it. */
export interface GivenTunnel {
  readonly allowedIps: readonly Prefix[];
  readonly presharedKey: Secret | null;
  /** Seconds between keepalives, or null for none. */
  readonly keepalive: number | null;
}

/** A peer that this host saw fail, and avoids where there is another way. */
export interface Failure {
  readonly peer: PeerId;
  /** It is heard again, and trusted again after a while: better than one that is silent, not as good as one that was well. */
  readonly back: boolean;
}

/** The labels by which the hosts file has named a peer, the present one first. */
export interface HeldLabels {
  readonly peer: PeerId;
  readonly labels: readonly string[];
}

/** A network and all its peers at one revision: what a host is told. */
export interface NetworkMap {
  /** Null where the service did not tell it: then the map cannot be read anew. */
  readonly id: Id | null;
  readonly name: string;
  /** This host's own address alone, where the service did not tell the range. */
  readonly cidr: Prefix;
  readonly routes: readonly Prefix[];
  /** The strong ETag under which the service served it, where it has such a thing. */
  readonly revision: string | null;
  readonly peers: readonly Peer[];
  /** What the service lists and nobody could use; not there where it is nothing. */
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

/** What a ready wg-quick text says beside what this host is made of. */
export interface TextRemarks {
  /** Name servers and search domains. */
  readonly dns: readonly string[];
  /** What of it is not used, a clause each. */
  readonly remarks: readonly string[];
}

/** Where a control plane is, and whether plain http may be spoken to it beyond loopback, because somebody said so. */
export interface ServiceAddress {
  /** The base address, without a trailing slash. */
  readonly url: string;
  readonly insecureHttp: boolean;
}

/** `report` takes the new key and says so until somebody accepts it; `strict` keeps the old one until then. */
export type PinRule = (typeof pinRules)[number];
export const pinRules = ['report', 'strict'] as const;

/** By what a peer is known. */
export interface Known {
  readonly peer: PeerId;
  readonly address: Address;
  readonly publicKey: PublicKey;
  readonly identity: IdentityKey | null;
  /** The serial of the newest proof seen; 0 before the first. */
  readonly serial: number;
}

/** What a host knows of a peer since it first saw it, and holds against what the service says later. */
export interface Pin extends Known {
  /** What the service says now instead, without the peer's own word for it, and nobody accepted yet. */
  readonly claimed: Known | null;
}

/** What the person who joined this host decided; it outlives every pass. */
export interface Options {
  readonly listenPort: number | null;
  readonly mtu: number | null;
  readonly acceptRoutes: boolean;
  readonly masquerade: boolean;
  /** Prefixes that the guard must let through. */
  readonly allowRoutes: readonly Prefix[];
  /** Hosts behind a connector's routes, by which it tells whether its LAN is well. */
  readonly probes: readonly ProbeTarget[];
  /** Whether the hosts file names the peers. */
  readonly hosts: boolean;
  /** What becomes of a peer whose public key is another than the one known, without its own word for it. */
  readonly pin: PinRule;
  /** Seconds after which the daemon makes a new key pair; null for never. */
  readonly rotateEvery: number | null;
}

/** A peer as WireGuard is to hold it. Null is a value: no key, no endpoint known, no keepalive. */
export interface DesiredPeer {
  readonly publicKey: PublicKey;
  readonly presharedKey: Secret | null;
  readonly endpoint: SocketEndpoint | null;
  readonly allowedIps: readonly Prefix[];
  /** Seconds between keepalives, or null for none. */
  readonly keepalive: number | null;
}

/** A wg-quick configuration in typed values: what is written to the file, and what the interface is to be. */
export interface TunnelConfig {
  readonly privateKey: Secret;
  /** Null leaves the port to the kernel. */
  readonly listenPort: number | null;
  /** The mark on what WireGuard itself sends; null for none. */
  readonly fwmark: number | null;
  readonly mtu: number;
  /** The interface's own address with the length of the range that is on-link. */
  readonly address: InterfaceAddress;
  readonly peers: readonly DesiredPeer[];
}

/** An address and the prefix length it is assigned with: `10.77.0.5/24` keeps its host bits. */
export interface InterfaceAddress {
  readonly address: Address;
  readonly length: number;
}

/** The range that is on-link with an address, to which the kernel makes a route; null for an address alone. */
export function onLinkRange(address: InterfaceAddress): Prefix | null {
  return address.length === 32 ? null : maskPrefix(formatInterfaceAddress(address));
}

export function formatInterfaceAddress({ address, length }: InterfaceAddress): string {
  return `${address}/${length}`;
}

/** Orders ids so that every host orders them alike: numbers by size, before strings by code unit. */
export function comparePeerIds(a: Id, b: Id): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a !== typeof b) return typeof a === 'number' ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}
