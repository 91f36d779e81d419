import type { EnrollmentKey } from '../../contract/enrollment-key.ts';
import type { Network, NetworkSummary } from '../../contract/network.ts';
import type { KeyProof, Peer, PeerType } from '../../contract/peer.ts';
import type { Prefix } from '../../core/cidr.ts';
import type { StoredKey } from '../store/enrollment-keys.ts';
import type { StoredNetwork } from '../store/networks.ts';
import type { StoredPeer } from '../store/peers.ts';

export function presentSummary(network: StoredNetwork): NetworkSummary {
  const { id, name, description, range, routes, revision } = network;
  return { id, name, description, private_cidr: range, routes: [...routes], vpn_type: 'wireguard', revision };
}

export function presentNetwork(network: StoredNetwork, peers: readonly StoredPeer[]): Network {
  return { ...presentSummary(network), peers: peers.map((peer) => presentPeer(network, peer)) };
}

/**
 * A peer as its network shows it. Its routes are those it is to serve without what it withdrew, and both name only what the network
 * still has; what was withdrawn and is not this peer's to serve is kept, and not shown.
 */
export function presentPeer(network: StoredNetwork, peer: StoredPeer): Peer {
  const { id, name, peer_type, public_key, address, endpoint, created_at } = peer;
  const { assigned, withdrawn, isLimited } = readService(network, peer);
  return {
    ...{ id, name, peer_type, public_key, address, endpoint, created_at },
    ...(peer.identity_key !== null && { identity_key: peer.identity_key }),
    ...(peer.key_proof !== null && { key_proof: JSON.parse(peer.key_proof) as KeyProof }),
    ...(peer.network_secret_tag !== null && { network_secret_tag: peer.network_secret_tag }),
    ...(isLimited && { routes: assigned.filter((route) => !withdrawn.includes(route)) }),
    ...(withdrawn.length > 0 && { withdrawn }),
    ...(peer.serving_since !== null && { serving_since: peer.serving_since }),
    ...(peer.priority !== 0 && { priority: peer.priority }),
  };
}

/** True while a connector has a route in service. */
export function isServing(network: StoredNetwork, peer: Pick<StoredPeer, 'routes' | 'withdrawn'>): boolean {
  const { assigned, withdrawn } = readService(network, peer);
  return assigned.some((route) => !withdrawn.includes(route));
}

function readService(network: StoredNetwork, peer: Pick<StoredPeer, 'routes' | 'withdrawn'>) {
  const limit = peer.routes === null ? null : (JSON.parse(peer.routes) as Prefix[]);
  const assigned = limit?.filter((route) => network.routes.includes(route)) ?? network.routes;
  const stored = JSON.parse(peer.withdrawn) as Prefix[];
  const withdrawn = stored.filter((prefix) => prefix === network.range || assigned.includes(prefix));
  return { assigned, withdrawn, isLimited: limit !== null || withdrawn.length > 0 };
}

export function presentKey(key: StoredKey): EnrollmentKey {
  const { id, name, max_uses, uses, expires_at } = key;
  const { types, routes } = readLimits(key);
  return {
    ...{ id, name, max_uses, uses, expires_at },
    ...(types !== null && { peer_types: [...types] }),
    ...(routes !== null && { routes: [...routes] }),
  };
}

/** What a peer that enrols with a key may be; null for anything. */
export function readLimits({ peer_types, routes }: Pick<StoredKey, 'peer_types' | 'routes'>): {
  readonly types: readonly PeerType[] | null;
  readonly routes: readonly Prefix[] | null;
} {
  return {
    types: peer_types === null ? null : (JSON.parse(peer_types) as PeerType[]),
    routes: routes === null ? null : (JSON.parse(routes) as Prefix[]),
  };
}
