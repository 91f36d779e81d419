import type { NetworkMap, Peer, PeerFailure, PeerId } from '../../map/model.ts';
import type { Prefix } from '../../net/cidr.ts';
import { spreadHosts } from './spread.ts';

/** A network route and the connector that carries it for this host. */
export interface RouteOwner {
  readonly prefix: Prefix;
  /** The connector in service; null without one, or if this host serves the route itself. */
  readonly via: Peer | null;
  /** The peer that receives the packets: `via`, or the relay if `via` is not reached directly. */
  readonly hop: Peer | null;
  /** The other connectors of the route, in the order in which they would take over. */
  readonly standby: readonly Peer[];
  readonly note: 'served here' | 'withdrawn here' | 'not accepted' | 'no connector' | null;
}

/** Includes withdrawn routes. `indexed` has the positions of the map's routes, for many calls. */
export function assignedRoutes(
  map: NetworkMap,
  { type, routes, withdrawn }: Peer,
  indexed?: ReadonlyMap<Prefix, number>,
): readonly Prefix[] {
  if (type !== 'connector') return [];
  if (routes === null) return map.routes;
  const places = indexed ?? placesOf(map);
  const placeOf = (route: Prefix) => places.get(route) ?? -1;
  const own = new Set([...routes, ...withdrawn]);
  return [...own].filter((route) => places.has(route)).sort((a, b) => placeOf(a) - placeOf(b));
}

function placesOf({ routes }: NetworkMap): ReadonlyMap<Prefix, number> {
  return new Map(routes.map((route, place) => [route, place]));
}

/** Returns each route's owner, in the map's order. `ranked` has the other peers, best first. */
export function ownRoutes(
  { map, self, acceptRoutes, failed }: NetworkView,
  ranked: readonly Peer[],
  path: { readonly direct: ReadonlySet<Peer>; readonly relay: Peer | null },
): RouteOwner[] {
  const { direct, relay } = path;
  const serving = findServing(
    map,
    ranked.filter((peer) => direct.has(peer) || relay !== null),
  );
  const own = new Set(assignedRoutes(map, self));
  return map.routes.map((prefix) => {
    if (own.has(prefix)) {
      const note = self.withdrawn.includes(prefix) ? 'withdrawn here' : 'served here';
      return { prefix, via: null, hop: null, standby: [], note };
    }
    const [via, ...standby] = spreadHosts({ map, failed }, prefix, self.id, serving(prefix));
    if (via === undefined) return { prefix, via: null, hop: null, standby, note: 'no connector' };
    if (!acceptRoutes) return { prefix, via, hop: null, standby, note: 'not accepted' };
    return { prefix, via, hop: direct.has(via) ? via : relay, standby, note: null };
  });
}

/** Finds the connectors that serve a route, by rank. Evaluates each peer once for all routes. */
export function findServing(map: NetworkMap, ranked: readonly Peer[]): (prefix: Prefix) => readonly Peer[] {
  const connectors = ranked.filter((peer) => peer.type === 'connector');
  // In most networks, each connector serves all routes, or only a few.
  const ofAll = connectors.filter(servesAll);
  const others = connectors.filter((peer) => !servesAll(peer));
  const places = placesOf(map);
  const pairs = others.flatMap((peer) => {
    const withdrawn = new Set(peer.withdrawn);
    const served = assignedRoutes(map, peer, places).filter((route) => !withdrawn.has(route));
    return served.map((prefix) => ({ prefix, peer }));
  });
  const ofSome = Map.groupBy(pairs, ({ prefix }) => prefix);
  return (prefix) => {
    const some = ofSome.get(prefix)?.map(({ peer }) => peer);
    if (some === undefined || ofAll.length === 0) return some ?? ofAll;
    const either = new Set(some);
    return connectors.filter((peer) => servesAll(peer) || either.has(peer));
  };
}

function servesAll({ routes, withdrawn }: Peer): boolean {
  return routes === null && withdrawn.length === 0;
}

/** A network as one host sees it: the map, its own peer, and the failures that it observed. */
export interface NetworkView {
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly acceptRoutes: boolean;
  readonly failed: readonly PeerFailure[];
  /** False if the whole range cannot lead into the tunnel: the relay then gets single addresses. */
  readonly takesRange: boolean;
  /** Peers without an endpoint that this host reaches over a direct path; absent for none. */
  readonly paths?: readonly PeerId[];
}
