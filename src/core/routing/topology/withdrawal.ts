import type { NetworkMap, Peer, PeerFailure } from '../../map/model.ts';
import type { Prefix } from '../../net/cidr.ts';
import { assignedRoutes } from './route-owner.ts';
import { rankConnectors } from './topology.ts';

/** The routes and relays that are lost when a connector goes out of service. */
export interface Unserved {
  readonly routes: readonly Prefix[];
  /** Peers without an endpoint that no other connector would relay to each other, by name. */
  readonly relayed: readonly string[];
}

/** Finds what only `self` serves. A connector that does not answer this host does not count. */
export function findUnserved(map: NetworkMap, self: Peer, failed: readonly PeerFailure[]): Unserved {
  const silent = new Set(failed.filter(({ back }) => !back).map(({ peer }) => peer));
  const others = map.peers.filter(({ id, type }) => type === 'connector' && id !== self.id && !silent.has(id));
  const served = new Set(
    others.flatMap((peer) => assignedRoutes(map, peer).filter((route) => !peer.withdrawn.includes(route))),
  );
  const own = assignedRoutes(map, self).filter((route) => !self.withdrawn.includes(route));
  const relays = (peer: Peer) => !peer.withdrawn.includes(map.cidr);
  const hidden = map.peers.filter(({ endpoint, id }) => endpoint === null && id !== self.id).map(({ name }) => name);
  const isLast = relays(self) && !others.some(relays);
  return {
    routes: own.filter((route) => !served.has(route)),
    relayed: isLast && hidden.length > 1 ? hidden : [],
  };
}

/**
 * True if a connector that cannot forward to a route leaves it to another: in service, only to a
 * connector of lower rank. A connector that left it takes it back when no other serves it. So if
 * none can forward, the last keeps the route, in whatever order they detect it.
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

/** As {@link leavesRoute}, for relaying. The relay that the map names precedes all others. */
export function leavesRelay(map: NetworkMap, self: Peer): boolean {
  const { compare } = rankConnectors([]);
  const isFirst = map.relay === self.id || self.withdrawn.includes(map.cidr);
  return map.peers.some(
    (peer) =>
      peer.id !== self.id &&
      peer.type === 'connector' &&
      peer.endpoint !== null &&
      !peer.withdrawn.includes(map.cidr) &&
      (isFirst || (peer.id !== map.relay && compare(self, peer) < 0)),
  );
}
