import type { Underlay } from '../../host-state/actual.ts';
import { compareConnectors, type RankedConnector } from '../../map/connector-rank.ts';
import { comparePeerIds, type NetworkMap, type Peer, type PeerFailure } from '../../map/model.ts';
import { type Address, comparePrefixes, hostPrefix, type Prefix } from '../../net/cidr.ts';
import type { Endpoint } from '../../net/endpoint.ts';
import { probePrefixOf } from '../../paths/probe-address.ts';
import { assignedRoutes, type NetworkView, ownRoutes, type RouteOwner } from './route-owner.ts';
import { dialsOnly, findDialledConnectors, isDirect, mayHavePath } from './via-connectors.ts';

/** A peer that this host exchanges packets with directly, with its allowed IPs. */
export interface DirectPeer {
  readonly peer: Peer;
  readonly endpoint: Endpoint | null;
  readonly allowedIps: readonly Prefix[];
  readonly keepalive: number | null;
}

export interface Topology {
  readonly reaches: readonly DirectPeer[];
  readonly routes: readonly RouteOwner[];
  /** The connector that relays to peers that are not reached directly; null if none is needed. */
  readonly relay: Peer | null;
  /** Peers that do not answer directly, and are reached through the relay until they do. */
  readonly relayedPeers: readonly Peer[];
}

/** Seconds, as wg(8) recommends. Half of a NAT's usual timeout, 60 s, is too slow for some. */
const natKeepalive = 25;

/**
 * Computes the topology from the view of one host:
 * - A peer is reached directly while it answers, if it or this host has an endpoint.
 * - A peer that dials only one connector is reached through that connector.
 * - A peer with a direct path is reached over it, and its routes too. Its endpoint is learned.
 * - All other peers are reached through the relay.
 * - A route belongs to the active connector among those that serve it. Every prefix has one owner.
 *
 * Hosts may observe different failures for a while, and so use different relays. A host accepts
 * from each connector packets with that connector's own address, whichever relay it uses. A relay
 * therefore masquerades what it relays, except as `findKeptSources` states.
 */
export function reachPeers(view: NetworkView): Topology {
  const { map, self } = view;
  if (map.peers.some((peer) => peer.given)) return reachProvided(view, assignedRoutes(map, self));
  const others = map.peers.filter((peer) => peer.id !== self.id);
  const ranking = rankConnectors(view.failed);
  const direct = others.filter((peer) => isDirect(peer, self, map));
  const silent = direct.filter((peer) => peer.type !== 'connector' && !dialsOnly(peer, self) && ranking.isSilent(peer));
  const relays = direct.filter((peer) => peer.type === 'connector' && !peer.withdrawn.includes(map.cidr));
  const best = chooseRelay(relays, map, ranking);
  const dialled = findDialledConnectors({ map, self, direct, isSilent: ranking.isSilent, relay: best });
  const withoutOwn = others.filter((peer) => peer.via && !direct.includes(peer) && !dialled.has(peer));
  // A host with an endpoint needs a relay for two kinds of peers: those that do not answer, and
  // devices whose own connector it cannot use.
  const relay = self.endpoint === null || silent.length > 0 || withoutOwn.length > 0 ? best : null;
  const relayedPeers = relay !== null && !ranking.isSilent(relay) ? silent : [];
  // A path comes and goes on each host alone, so the choice of the relay does not depend on it.
  const onPath = findOnPath(view, others);
  const path = { direct: new Set([...direct, ...onPath]), relay };
  const relayed = [
    ...(self.endpoint === null
      ? relayedPrefixes(view, others, new Set([...path.direct, ...dialled.keys()]))
      : withoutOwn.map((peer) => hostPrefix(peer.address))),
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
      // A connector keeps its own address even while it does not answer: probes to that address
      // detect its recovery.
      allowedIps: [
        ...(viaRelay.has(peer) ? [] : [hostPrefix(peer.address)]),
        ...(peer === relay ? relayed : []),
        ...(dialling.get(peer) ?? []).map(({ address }) => hostPrefix(address)),
        ...(carried.get(peer) ?? []).map((route) => route.prefix),
      ].toSorted(comparePrefixes),
      keepalive: self.endpoint === null && peer.endpoint !== null ? natKeepalive : null,
    }));
  const overPaths = onPath.map((peer) => ({
    peer,
    endpoint: null,
    allowedIps: [
      hostPrefix(peer.address),
      ...(map.id === null ? [] : [probePrefixOf(map.id, peer.id)]),
      ...(carried.get(peer) ?? []).map((route) => route.prefix),
    ].toSorted(comparePrefixes),
    keepalive: natKeepalive,
  }));
  const all = [...reaches, ...overPaths].toSorted((a, b) => comparePeerIds(a.peer.id, b.peer.id));
  return { reaches: overPaths.length === 0 ? reaches : all, routes, relay, relayedPeers };
}

/** The peers that are reached over a direct path now. Peers that may not have one are left out. */
function findOnPath({ map, self, paths = [] }: NetworkView, others: readonly Peer[]): readonly Peer[] {
  if (paths.length === 0) return [];
  const used = new Set(paths);
  return others.filter((peer) => used.has(peer.id) && mayHavePath(peer, self, map));
}

/**
 * Returns the relay that the map names while it answers, so that all hosts use the same one.
 * Without it, the best connector relays.
 */
function chooseRelay(
  relays: readonly Peer[],
  map: NetworkMap,
  { isSilent, compare }: ReturnType<typeof rankConnectors>,
): Peer | null {
  const named = relays.find(({ id }) => id === map.relay);
  if (named !== undefined && !isSilent(named)) return named;
  return relays.toSorted(compare)[0] ?? null;
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
 * Computes the topology of a complete wg-quick text: all its peers are direct, with its allowed
 * IPs. A prefix that is also a route of the map can be declined or refused like any route. There is
 * no standby. `own` has the routes that this host is assigned to serve.
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
 * Orders connectors by these criteria, so that hosts with the same observations get the same order:
 * 1. Healthy connectors precede recovering ones, and these precede silent ones.
 * 2. Among failed connectors, the one with the latest sign of life is first.
 * 3. Their rank; see {@link compareConnectors}.
 */
export function rankConnectors(failed: readonly PeerFailure[]) {
  const failures = new Map(failed.map((each) => [each.peer, each]));
  const isSilent = ({ id }: Peer) => failures.get(id)?.back === false;
  const illness = (peer: Peer) => (isSilent(peer) ? 2 : failures.has(peer.id) ? 1 : 0);
  const heardOf = ({ id }: Peer) => failures.get(id)?.heard ?? 0;
  const compare = (a: Peer, b: Peer) =>
    illness(a) - illness(b) || heardOf(b) - heardOf(a) || compareConnectors(rankOf(a), rankOf(b));
  return { isSilent, compare };
}

function rankOf({ id, priority, servingSince }: Peer): RankedConnector {
  return { id, priority, serving_since: servingSince };
}

/** A peer that cannot be reached because its address is on another interface of this host. */
export interface HiddenPeer {
  readonly peer: Peer;
  readonly link: string;
}

/**
 * Finds the peers whose address this host has on another interface: the kernel delivers locally. A
 * join refuses such a conflict, but an overlapping network that is joined later can cause it.
 */
export function findHiddenPeers({ peers }: NetworkMap, own: Address, { connected }: Underlay): HiddenPeer[] {
  const links = new Map(connected.map(({ prefix, link }) => [prefix, link]));
  return peers.flatMap((peer) => {
    const link = links.get(hostPrefix(peer.address));
    return link === undefined || peer.address === own ? [] : [{ peer, link }];
  });
}
