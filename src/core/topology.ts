import { comparePrefixes, hostPrefix, type Prefix } from './cidr.ts';
import type { Endpoint } from './endpoint.ts';
import { reachGiven } from './given-topology.ts';
import { comparePeerIds, type Failure, type NetworkMap, type Peer } from './model.ts';

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

/** A network route and the connector that carries it for this host. */
export interface RouteOwner {
  readonly prefix: Prefix;
  /** The connector in service; null when there is none, or when this host serves the route itself. */
  readonly via: Peer | null;
  /** The peer that packets are handed to: `via`, or the relay where `via` cannot be reached directly. */
  readonly hop: Peer | null;
  /** Who else serves it, in the order in which they would take over. */
  readonly standby: readonly Peer[];
  readonly note: 'served here' | 'withdrawn here' | 'not accepted' | 'no connector' | null;
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
  const { map, self, failed } = standpoint;
  if (map.peers.some((peer) => peer.given)) return reachGiven(standpoint, assignedRoutes(map, self));
  const others = map.peers.filter((peer) => peer.id !== self.id);
  const direct = others.filter((peer) => peer.endpoint !== null || self.endpoint !== null);
  const silent = direct.filter((peer) => peer.type !== 'connector' && isSilent(peer, failed));
  // With an endpoint of our own every peer is direct, and a relay is for those alone that do not answer.
  const needsRelay = self.endpoint === null || silent.length > 0;
  const [relay = null] = needsRelay ? rankConnectors(direct.filter(relays(map)), failed) : [];
  const detours = relay !== null && !isSilent(relay, failed) ? silent : [];
  const relayed = [
    ...(self.endpoint === null ? relayedPrefixes(standpoint, others, direct) : []),
    ...detours.map((peer) => hostPrefix(peer.address)),
  ];
  const routes = map.routes.map((prefix) => ownRoute(prefix, standpoint, others, new Set(direct), relay));
  const reaches = direct
    .toSorted((a, b) => comparePeerIds(a.id, b.id))
    .map((peer) => {
      const carried = routes.filter((route) => route.hop?.id === peer.id).map((route) => route.prefix);
      return {
        peer,
        endpoint: peer.endpoint,
        // A connector keeps its own address even while it does not answer: there it is asked whether it is back.
        allowedIps: [
          ...(detours.includes(peer) ? [] : [hostPrefix(peer.address)]),
          ...(peer.id === relay?.id ? relayed : []),
          ...carried,
        ].toSorted(comparePrefixes),
        keepalive: self.endpoint === null && peer.endpoint !== null ? natKeepalive : null,
      };
    });
  return { reaches, routes, relay, detours };
}

/** The routes of the network that this peer serves now. */
function servedRoutes(map: NetworkMap, peer: Peer): readonly Prefix[] {
  return assignedRoutes(map, peer).filter((route) => !peer.withdrawn.includes(route));
}

/** The routes of the network that this peer is there to serve, those included that it took out of service. */
export function assignedRoutes(map: NetworkMap, { type, routes, withdrawn }: Peer): readonly Prefix[] {
  if (type !== 'connector') return [];
  return map.routes.filter((route) => routes === null || routes.includes(route) || withdrawn.includes(route));
}

function ownRoute(
  prefix: Prefix,
  { map, self, acceptRoutes, failed }: Standpoint,
  others: readonly Peer[],
  direct: ReadonlySet<Peer>,
  relay: Peer | null,
): RouteOwner {
  if (assignedRoutes(map, self).includes(prefix)) {
    const note = self.withdrawn.includes(prefix) ? 'withdrawn here' : 'served here';
    return { prefix, via: null, hop: null, standby: [], note };
  }
  const serving = others.filter((peer) => servedRoutes(map, peer).includes(prefix));
  const reachable = serving.filter((peer) => direct.has(peer) || relay !== null);
  const [via, ...standby] = rankConnectors(reachable, failed);
  if (via === undefined) return { prefix, via: null, hop: null, standby, note: 'no connector' };
  if (!acceptRoutes) return { prefix, via, hop: null, standby, note: 'not accepted' };
  return { prefix, via, hop: direct.has(via) ? via : relay, standby, note: null };
}

function relayedPrefixes({ map, takesRange }: Standpoint, others: readonly Peer[], direct: readonly Peer[]): Prefix[] {
  if (takesRange) return [map.cidr];
  return others.filter((peer) => !direct.includes(peer)).map((peer) => hostPrefix(peer.address));
}

function isSilent(peer: Peer, failed: readonly Failure[]): boolean {
  return failed.some((each) => each.peer === peer.id && !each.back);
}

function relays(map: NetworkMap) {
  return (peer: Peer) => !peer.withdrawn.includes(map.cidr);
}

/** Healthy first, then those with an endpoint, then the lowest id: the same order on every host that sees the same. */
function rankConnectors(peers: readonly Peer[], failed: readonly Failure[]): Peer[] {
  const health = (peer: Peer) => (isSilent(peer, failed) ? 4 : failed.some((each) => each.peer === peer.id) ? 2 : 0);
  const rank = (peer: Peer) => health(peer) + (peer.endpoint === null ? 1 : 0);
  const connectors = peers.filter((peer) => peer.type === 'connector');
  return connectors.toSorted((a, b) => rank(a) - rank(b) || comparePeerIds(a.id, b.id));
}
