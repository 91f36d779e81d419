import type { NetworkMap, Peer } from '../map/model.ts';
import type { Prefix } from '../net/cidr.ts';
import { assignedRoutes } from './route-owner.ts';
import { rankConnectors } from './topology.ts';

/**
 * True where a connector that cannot forward to a route leaves it to another one. A connector that serves the route leaves it only to one of
 * lower rank, and one that left it takes it back when no other serves it. So if none can forward, the last one keeps the route, in whatever
 * order they find out.
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
