import type { NetworkMap, Peer } from '../../map/model.ts';
import type { Prefix } from '../../net/cidr.ts';
import { assignedRoutes } from './route-owner.ts';
import { rankConnectors } from './topology.ts';

/**
 * True if a connector that cannot forward to a route leaves it to another connector. A connector in
 * service leaves the route only to a connector of lower rank. A connector that left it takes it
 * back when no other connector serves it. So if no connector can forward, the last one keeps the
 * route, in whatever order they detect it.
 */
export function leavesRoute(map: NetworkMap, self: Peer, route: Prefix): boolean {
  const { compare } = rankConnectors([]);
  const hasLeft = self.withdrawn.includes(route);
  return map.peers.some(
    (peer) =>
      peer.id !== self.id &&
      !peer.withdrawn.includes(route) &&
      assignedRoutes(map, peer).includes(route) &&
      (hasLeft || compare(self, peer) < 0),
  );
}
