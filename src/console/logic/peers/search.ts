import type { Peer } from '../../../contract/peer.ts';
import { peerTypes } from './peer-types.ts';

/** The peers for which each word of a query is a part of name, address, endpoint, key, type or routes. */
export function searchPeers(peers: readonly Peer[], query: string): readonly Peer[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return peers;
  return peers.filter((peer) => {
    const text = textOf(peer);
    return words.every((word) => text.includes(word));
  });
}

function textOf({ name, address, endpoint, public_key, peer_type, routes = [], suspended_at }: Peer): string {
  const state = suspended_at === undefined ? '' : 'suspended';
  return [name, address, endpoint, public_key, peerTypes[peer_type], ...routes, state].join(' ').toLowerCase();
}
