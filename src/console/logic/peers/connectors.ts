import type { Peer } from '../../../contract/peer.ts';
import { isListedConnector } from '../../../core/export/device-profile.ts';
import { servesRoute } from '../../../core/export/find-losses.ts';

/** The connectors of a route, in the order in which hosts prefer them while all are healthy. */
export function findConnectors(peers: readonly Peer[], route: string): Peer[] {
  return peers.filter((peer) => servesRoute(peer, route)).sort(compareRank);
}

/** The connectors that forward between peers of the network, in the same order. */
export function findRelays(peers: readonly Peer[], range: string): Peer[] {
  return peers.filter((peer) => isListedConnector(peer) && !(peer.withdrawn ?? []).includes(range)).sort(compareRank);
}

/** The highest priority first, then the longest in service, then the lowest id. */
function compareRank(a: Peer, b: Peer): number {
  const since = ({ serving_since }: Peer) => serving_since ?? '9999';
  return (b.priority ?? 0) - (a.priority ?? 0) || since(a).localeCompare(since(b)) || a.id - b.id;
}
