import { comparePrefixes, hostPrefix, type Prefix } from './cidr.ts';
import type { Endpoint } from './endpoint.ts';
import { reachGiven } from './given-topology.ts';
import { comparePeerIds, type Failure, type NetworkMap, type Peer } from './model.ts';
import { rankConnectors } from './rank-connectors.ts';
import { assignedRoutes, ownRoutes, type RouteOwner } from './route-owner.ts';

/** Where a host stands in its network: the map, which peer it is, and what it last saw. */
export interface Standpoint {
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly acceptRoutes: boolean;
  readonly failed: readonly Failure[];
  /** False where the network's range as a whole cannot be taken here: then the relay gets single addresses. */
  readonly takesRange: boolean;
}

/** A peer that this host exchanges packets with directly, and the prefixes that are its own. */
export interface Reach {
  readonly peer: Peer;
  readonly endpoint: Endpoint | null;
  readonly allowedIps: readonly Prefix[];
  readonly keepalive: number | null;
}

export interface Topology {
  readonly reaches: readonly Reach[];
  readonly routes: readonly RouteOwner[];
  /** The connector through which this host meets those that it cannot reach directly; null where it needs none. */
  readonly relay: Peer | null;
  /** Peers that do not answer directly, and are reached through the relay until they do. */
  readonly detours: readonly Peer[];
}

/**
 * Seconds between keepalives of a host that nobody can dial: half of the 60 s after which common NATs forget a UDP
 * mapping is too slow for some, 25 s is what wg(8) advises.
 */
const natKeepalive = 25;

/**
 * Who reaches whom. A peer with an endpoint, or to which we have one, is reached directly while it answers; the others through
 * the active connector; a route belongs to the active connector among those that serve it. Every prefix has one owner.
 *
 * Hosts may differ for a while in whom they saw fail, and so in their relays. A host takes from each connector what bears that
 * connector's own address, whomever it holds for active: a relay therefore gives what it relays
 * its own address.
 */
export function reachPeers(standpoint: Standpoint): Topology {
  const { map, self } = standpoint;
  if (map.peers.some((peer) => peer.given)) return reachGiven(standpoint, assignedRoutes(map, self));
  const others = map.peers.filter((peer) => peer.id !== self.id);
  const ranking = rankConnectors(standpoint.failed);
  const direct = others.filter((peer) => peer.endpoint !== null || self.endpoint !== null);
  const silent = direct.filter((peer) => peer.type !== 'connector' && ranking.isSilent(peer));
  // With an endpoint of our own every peer is direct, and a relay is for those alone that do not answer.
  const needsRelay = self.endpoint === null || silent.length > 0;
  const [relay = null] = needsRelay ? direct.filter(relays(map)).toSorted(ranking.compare) : [];
  const detours = relay !== null && !ranking.isSilent(relay) ? silent : [];
  const way = { direct: new Set(direct), relay };
  const relayed = [
    ...(self.endpoint === null ? relayedPrefixes(standpoint, others, way.direct) : []),
    ...detours.map((peer) => hostPrefix(peer.address)),
  ];
  const routes = ownRoutes(standpoint, others.toSorted(ranking.compare), way);
  const carried = Map.groupBy(routes, (route) => route.hop);
  const detoured = new Set(detours);
  const reaches = direct
    .toSorted((a, b) => comparePeerIds(a.id, b.id))
    .map((peer) => ({
      peer,
      endpoint: peer.endpoint,
      // A connector keeps its own address even while it does not answer: there it is asked whether it is back.
      allowedIps: [
        ...(detoured.has(peer) ? [] : [hostPrefix(peer.address)]),
        ...(peer === relay ? relayed : []),
        ...(carried.get(peer) ?? []).map((route) => route.prefix),
      ].toSorted(comparePrefixes),
      keepalive: self.endpoint === null && peer.endpoint !== null ? natKeepalive : null,
    }));
  return { reaches, routes, relay, detours };
}

function relayedPrefixes(
  { map, takesRange }: Standpoint,
  others: readonly Peer[],
  direct: ReadonlySet<Peer>,
): Prefix[] {
  if (takesRange) return [map.cidr];
  return others.filter((peer) => !direct.has(peer)).map((peer) => hostPrefix(peer.address));
}

function relays(map: NetworkMap) {
  return (peer: Peer) => peer.type === 'connector' && !peer.withdrawn.includes(map.cidr);
}
