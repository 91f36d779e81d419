import { comparePrefixes, hostPrefix, type Prefix } from './cidr.ts';
import type { Endpoint } from './endpoint.ts';
import { comparePeerIds, type NetworkMap, type Peer, type PeerId } from './model.ts';

/** Where a host stands in its network: the map, which peer it is, and what it last saw. */
export interface Standpoint {
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly acceptRoutes: boolean;
  /** Connectors that this host saw fail. */
  readonly failed: ReadonlySet<PeerId>;
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
  readonly note: 'served here' | 'not accepted' | 'no connector' | null;
}

export interface Topology {
  readonly reaches: readonly Reach[];
  readonly routes: readonly RouteOwner[];
  /** The connector through which peers meet that have no endpoint on either side. */
  readonly relay: Peer | null;
}

/**
 * Seconds between keepalives of a host that nobody can dial: half of the 60 s after which common NATs forget a UDP
 * mapping is too slow for some, 25 s is what wg(8) advises.
 */
const natKeepalive = 25;

/**
 * Who reaches whom. A peer with an endpoint, or to which we have one, is reached directly; the others through the
 * active connector; a route belongs to the active connector among those that serve it. Every prefix has one owner.
 */
export function reachPeers(standpoint: Standpoint): Topology {
  const { map, self } = standpoint;
  const others = map.peers.filter((peer) => peer.id !== self.id);
  const direct = others.filter((peer) => peer.endpoint !== null || self.endpoint !== null);
  // With an endpoint of our own every peer is direct, and there is nobody left to relay to.
  const relay = self.endpoint === null ? activeConnector(direct, standpoint.failed) : null;
  const relayed = relayedPrefixes(standpoint, others, direct);
  const routes = map.routes.map((prefix) => ownRoute(prefix, standpoint, others, new Set(direct), relay));
  const reaches = direct
    .toSorted((a, b) => comparePeerIds(a.id, b.id))
    .map((peer) => {
      const carried = routes.filter((route) => route.hop?.id === peer.id).map((route) => route.prefix);
      return {
        peer,
        endpoint: peer.endpoint,
        allowedIps: [hostPrefix(peer.address), ...(peer.id === relay?.id ? relayed : []), ...carried].toSorted(
          comparePrefixes,
        ),
        keepalive: self.endpoint === null && peer.endpoint !== null ? natKeepalive : null,
      };
    });
  return { reaches, routes, relay };
}

/** The routes of the network that this peer serves. */
export function servedRoutes(map: NetworkMap, peer: Peer): readonly Prefix[] {
  if (peer.type !== 'connector') return [];
  return map.routes.filter((route) => peer.routes === null || peer.routes.includes(route));
}

function ownRoute(
  prefix: Prefix,
  { map, self, acceptRoutes, failed }: Standpoint,
  others: readonly Peer[],
  direct: ReadonlySet<Peer>,
  relay: Peer | null,
): RouteOwner {
  if (servedRoutes(map, self).includes(prefix)) return { prefix, via: null, hop: null, note: 'served here' };
  const serving = others.filter((peer) => servedRoutes(map, peer).includes(prefix));
  const via = activeConnector(
    serving.filter((peer) => direct.has(peer) || relay !== null),
    failed,
  );
  if (via === null) return { prefix, via: null, hop: null, note: 'no connector' };
  if (!acceptRoutes) return { prefix, via, hop: null, note: 'not accepted' };
  return { prefix, via, hop: direct.has(via) ? via : relay, note: null };
}

function relayedPrefixes({ map, takesRange }: Standpoint, others: readonly Peer[], direct: readonly Peer[]): Prefix[] {
  if (takesRange) return [map.cidr];
  return others.filter((peer) => !direct.includes(peer)).map((peer) => hostPrefix(peer.address));
}

/** Healthy first, then those with an endpoint, then the lowest id: the same choice on every host that sees the same. */
function activeConnector(peers: readonly Peer[], failed: ReadonlySet<PeerId>): Peer | null {
  const rank = (peer: Peer) => (failed.has(peer.id) ? 2 : 0) + (peer.endpoint === null ? 1 : 0);
  const connectors = peers.filter((peer) => peer.type === 'connector');
  return connectors.toSorted((a, b) => rank(a) - rank(b) || comparePeerIds(a.id, b.id))[0] ?? null;
}
