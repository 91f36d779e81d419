import type { Peer } from '../../../contract/peer.ts';
import { isListedConnector } from '../../../core/export/device-profile.ts';
import { servesRoute } from '../../../core/export/find-losses.ts';
import { compareConnectors } from '../../../core/map/connector-rank.ts';

/** The connectors of a route, in the order in which hosts prefer them while all are healthy. */
export function findConnectors(peers: readonly Peer[], route: string): Peer[] {
  return peers.filter((peer) => servesRoute(peer, route)).sort(compareConnectors);
}

/** The connectors that forward between peers of the network, in the same order. */
export function findRelays(peers: readonly Peer[], range: string): Peer[] {
  return peers
    .filter((peer) => isListedConnector(peer) && !(peer.withdrawn ?? []).includes(range))
    .sort(compareConnectors);
}
