import type { Peer } from '../../../contract/peer.ts';

/** The connectors that serve a route, in the order in which hosts prefer them while all are healthy. */
export function findConnectors(peers: readonly Peer[], route: string): Peer[] {
  return peers.filter((peer) => servesRoute(peer, route)).sort(compareRank);
}

/** The connectors that forward between peers of the network, in the same order. */
export function findRelays(peers: readonly Peer[], range: string): Peer[] {
  return peers
    .filter(({ peer_type, withdrawn = [] }) => peer_type === 'connector' && !withdrawn.includes(range))
    .sort(compareRank);
}

function servesRoute({ peer_type, routes, withdrawn = [] }: Peer, route: string): boolean {
  return peer_type === 'connector' && (routes?.includes(route) ?? true) && !withdrawn.includes(route);
}

/** The highest priority first, then the one that serves longest, then the lowest id. */
function compareRank(a: Peer, b: Peer): number {
  const since = ({ serving_since }: Peer) => serving_since ?? '9999';
  return (b.priority ?? 0) - (a.priority ?? 0) || since(a).localeCompare(since(b)) || a.id - b.id;
}
