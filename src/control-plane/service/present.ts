import type { EnrollmentKey } from '../../contract/enrollment-key.ts';
import type { Network, NetworkSummary } from '../../contract/network.ts';
import type { Peer } from '../../contract/peer.ts';
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

/** A peer as its network shows it; a limit on routes names only routes that the network still has. */
export function presentPeer(network: StoredNetwork, peer: StoredPeer): Peer {
  const { id, name, peer_type, public_key, address, endpoint, created_at } = peer;
  const served = peer.routes === null ? null : (JSON.parse(peer.routes) as Prefix[]);
  return {
    ...{ id, name, peer_type, public_key, address, endpoint, created_at },
    ...(served && { routes: served.filter((route) => network.routes.includes(route)) }),
  };
}

export function presentKey({ id, name, max_uses, uses, expires_at }: StoredKey): EnrollmentKey {
  return { id, name, max_uses, uses, expires_at };
}
