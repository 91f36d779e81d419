import type { PublicKey } from '../crypto/keys.ts';
import type { Actual, ActualPeer } from '../host-state/actual.ts';
import type { NetworkMap, PeerFailure, PeerId } from '../map/model.ts';
import type { SyncRefusal } from '../map/sync-refusal.ts';
import { type Address, covers, lengthOf, type Prefix } from '../net/cidr.ts';
import type { PathRecords } from '../paths/path-record.ts';
import type { Problem } from '../problems/problem.ts';
import type { Desired } from '../reconcile/desired.ts';

/** A network of this host: its last map, its desired state and its actual state. */
export interface NetworkOnHost {
  readonly map: NetworkMap;
  /** This host's own address in the network. */
  readonly address: Address;
  readonly listed: boolean;
  /** False after `cpn down`, and for a deleted network. */
  readonly enabled: boolean;
  /** The problem that the network was taken down or deleted, or null. */
  readonly down: Problem | null;
  /** The problem that the map lacks this host, or null. */
  readonly unlisted: Problem | null;
  readonly desired: Desired;
  /** False if a connector's LAN sees the addresses of the network, and so needs a route back. */
  readonly masquerades: boolean;
  /** False after `--no-direct-paths`. */
  readonly directPaths: boolean;
  readonly actual: Actual;
  /** The daemon's records of peers that do not answer: bytes received when it detected that. */
  readonly silent: Readonly<Record<string, number>>;
  /** The daemon's records of direct paths. */
  readonly paths: PathRecords;
  /** Peers that this host observed to fail, and that are silent. */
  readonly failed: readonly PeerId[];
  /** The same peers and those that respond again, as the state has them. */
  readonly failures: readonly PeerFailure[];
  /** The tag of this host's network secret; null if it has none. */
  readonly secretTag: string | null;
  /** Listed peers that have expired, by the time of the service. */
  readonly expired: readonly PeerId[];
  /** The problem that this connector's map is out of date, or null. */
  readonly outdated: Problem | null;
  /** Why the service refuses the newest map, with the service's text; null if it does not. */
  readonly refused: { readonly by: SyncRefusal; readonly error: string | null } | null;
}

/** A peer of a WireGuard table, and the prefix by which it owns an address. */
export interface PrefixOwner {
  readonly publicKey: PublicKey;
  readonly prefix: Prefix;
}

/** Returns the peer with the longest allowed IP that covers the address, as WireGuard chooses. */
export function findOwner(
  address: Address,
  peers: readonly { readonly publicKey: PublicKey; readonly allowedIps: readonly Prefix[] }[],
): PrefixOwner | null {
  const owners = peers.flatMap(({ publicKey, allowedIps }) =>
    allowedIps.filter((prefix) => covers(prefix, address)).map((prefix) => ({ publicKey, prefix })),
  );
  return owners.toSorted((a, b) => lengthOf(b.prefix) - lengthOf(a.prefix))[0] ?? null;
}

export function findWantedOwner(address: Address, { desired }: NetworkOnHost): PrefixOwner | null {
  return findOwner(address, desired.config.peers);
}

/** The entry of WireGuard's table for the desired owner of an address, or null. */
export function findActualPeer(address: Address, view: NetworkOnHost): ActualPeer | null {
  const owner = findWantedOwner(address, view);
  return view.actual.device?.peers.find(({ publicKey }) => publicKey === owner?.publicKey) ?? null;
}

/** The display name of a peer: its name, or its key if the network has no such peer. */
export function namePeer(publicKey: PublicKey, { map }: NetworkOnHost): string {
  return (
    map.peers.find((peer) => peer.publicKey === publicKey)?.name ?? `${publicKey}, which is no peer of ${map.name}`
  );
}
