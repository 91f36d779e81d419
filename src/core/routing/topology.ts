import { comparePeerIds, type Peer, type PeerFailure } from '../map/model.ts';
import { comparePrefixes, hostPrefix, type Prefix } from '../net/cidr.ts';
import type { Endpoint } from '../net/endpoint.ts';
import { assignedRoutes, type NetworkView, ownRoutes, type RouteOwner } from './route-owner.ts';
import { dialsOnly, findDialledConnectors, isDirect } from './via-connectors.ts';

/** A peer that this host exchanges packets with directly, and the prefixes that are its own. */
export interface DirectPeer {
  readonly peer: Peer;
  readonly endpoint: Endpoint | null;
  readonly allowedIps: readonly Prefix[];
  readonly keepalive: number | null;
}

export interface Topology {
  readonly reaches: readonly DirectPeer[];
  readonly routes: readonly RouteOwner[];
  /** The connector through which this host meets those that it cannot reach directly; null where it needs none. */
  readonly relay: Peer | null;
  /** Peers that do not answer directly, and are reached through the relay until they do. */
  readonly relayedPeers: readonly Peer[];
}

/**
 * Seconds between keepalives of a host without an endpoint: half of the 60 s after which common NATs forget a UDP
 * mapping is too slow for some, 25 s is what wg(8) advises.
 */
const natKeepalive = 25;

/**
 * Who reaches whom. A peer with an endpoint, or to which we have one, is reached directly while it answers; one that dials a connector
 * alone through that connector; the others through the active connector. A route belongs to the active connector among those that
 * serve it. Every prefix has one owner.
 *
 * Hosts may differ for a while in whom they saw fail, and so in their relays. A host takes from each connector what bears that
 * connector's own address, whomever it holds for active: a relay therefore gives what it relays
 * its own address.
 */
export function reachPeers(view: NetworkView): Topology {
  const { map, self } = view;
  if (map.peers.some((peer) => peer.given)) return reachProvided(view, assignedRoutes(map, self));
  const others = map.peers.filter((peer) => peer.id !== self.id);
  const ranking = rankConnectors(view.failed);
  const direct = others.filter((peer) => isDirect(peer, self, map));
  const silent = direct.filter((peer) => peer.type !== 'connector' && !dialsOnly(peer, self) && ranking.isSilent(peer));
  const relays = direct.filter((peer) => peer.type === 'connector' && !peer.withdrawn.includes(map.cidr));
  const [best = null] = relays.toSorted(ranking.compare);
  const dialled = findDialledConnectors({ map, self, direct, isSilent: ranking.isSilent, relay: best });
  const left = others.filter((peer) => peer.via && !direct.includes(peer) && !dialled.has(peer));
  // With an endpoint of our own the other peers are direct, and a relay is for those alone that do not answer.
  const relay = self.endpoint === null || silent.length > 0 || left.length > 0 ? best : null;
  const relayedPeers = relay !== null && !ranking.isSilent(relay) ? silent : [];
  const path = { direct: new Set(direct), relay };
  const relayed = [
    ...(self.endpoint === null
      ? relayedPrefixes(view, others, new Set([...direct, ...dialled.keys()]))
      : left.map((peer) => hostPrefix(peer.address))),
    ...relayedPeers.map((peer) => hostPrefix(peer.address)),
  ];
  const dialling = Map.groupBy(dialled.keys(), (peer) => dialled.get(peer));
  const routes = ownRoutes(view, others.toSorted(ranking.compare), path);
  const carried = Map.groupBy(routes, (route) => route.hop);
  const viaRelay = new Set(relayedPeers);
  const reaches = direct
    .toSorted((a, b) => comparePeerIds(a.id, b.id))
    .map((peer) => ({
      peer,
      endpoint: peer.endpoint,
      // A connector keeps its own address even while it does not answer: there it is asked whether it is back.
      allowedIps: [
        ...(viaRelay.has(peer) ? [] : [hostPrefix(peer.address)]),
        ...(peer === relay ? relayed : []),
        ...(dialling.get(peer) ?? []).map(({ address }) => hostPrefix(address)),
        ...(carried.get(peer) ?? []).map((route) => route.prefix),
      ].toSorted(comparePrefixes),
      keepalive: self.endpoint === null && peer.endpoint !== null ? natKeepalive : null,
    }));
  return { reaches, routes, relay, relayedPeers };
}

function relayedPrefixes(
  { map, takesRange }: NetworkView,
  others: readonly Peer[],
  direct: ReadonlySet<Peer>,
): Prefix[] {
  if (takesRange) return [map.cidr];
  return others.filter((peer) => !direct.has(peer)).map((peer) => hostPrefix(peer.address));
}

/**
 * Who reaches whom where the service gave a ready wg-quick text: everybody in it directly, by what the text says. A prefix of it that
 * the map holds for a route is one that may be declined or refused as any other; there is no standby.
 *
 * @param own the routes that this host is there to serve
 */
function reachProvided({ map, self, acceptRoutes }: NetworkView, own: readonly Prefix[]): Topology {
  const others = map.peers.filter((peer) => peer.id !== self.id).toSorted((a, b) => comparePeerIds(a.id, b.id));
  const routes = map.routes.map((prefix): RouteOwner => {
    if (own.includes(prefix)) {
      const note = self.withdrawn.includes(prefix) ? 'withdrawn here' : 'served here';
      return { prefix, via: null, hop: null, standby: [], note };
    }
    const via = others.find((peer) => peer.given?.allowedIps.includes(prefix)) ?? null;
    if (via === null) return { prefix, via, hop: null, standby: [], note: 'no connector' };
    return { prefix, via, hop: acceptRoutes ? via : null, standby: [], note: acceptRoutes ? null : 'not accepted' };
  });
  const declined = new Set<Prefix>(routes.filter(({ hop }) => hop === null).map(({ prefix }) => prefix));
  const reaches = others.map((peer) => ({
    peer,
    endpoint: peer.endpoint,
    allowedIps: (peer.given?.allowedIps ?? []).filter((prefix) => !declined.has(prefix)).toSorted(comparePrefixes),
    keepalive: peer.given?.keepalive ?? null,
  }));
  return { reaches, routes, relay: null, relayedPeers: [] };
}

/**
 * Healthy connectors first, among silent ones the one heard last, then the highest priority, then the one that has served longest, then the lowest id: the same order on every
 * host that sees the same. A newcomer comes last, with an endpoint or without, so that it takes nothing from one that serves.
 */
export function rankConnectors(failed: readonly PeerFailure[]) {
  const failures = new Map(failed.map((each) => [each.peer, each]));
  const isSilent = ({ id }: Peer) => failures.get(id)?.back === false;
  const illness = (peer: Peer) => (isSilent(peer) ? 2 : failures.has(peer.id) ? 1 : 0);
  const heardOf = ({ id }: Peer) => failures.get(id)?.heard ?? 0;
  const compare = (a: Peer, b: Peer) =>
    illness(a) - illness(b) ||
    heardOf(b) - heardOf(a) ||
    (b.priority ?? 0) - (a.priority ?? 0) ||
    servingSince(a) - servingSince(b) ||
    comparePeerIds(a.id, b.id);
  return { isSilent, compare };
}

/** One of which the service says nothing comes after those of which it does. */
function servingSince({ servingSince = Number.MAX_SAFE_INTEGER }: Peer): number {
  return servingSince;
}
