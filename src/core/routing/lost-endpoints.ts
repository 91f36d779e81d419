import type { Underlay } from '../host-state/actual.ts';
import type { NetworkMap, Peer, PeerId } from '../map/model.ts';
import type { Options } from '../map/options.ts';
import type { Resolved } from '../names/resolved-names.ts';
import { type Address, covers, hostPrefix, isDefaultRoute, type Prefix } from '../net/cidr.ts';
import { formatEndpoint, unusableAddress } from '../net/endpoint.ts';
import { PrefixIndex } from '../net/prefix-index.ts';
import { staysLocal } from './kept-outside.ts';
import type { RouteGuard } from './public-prefixes.ts';
import { locate } from './reach-outside.ts';
import { assignedRoutes } from './topology/route-owner.ts';

/** Conflicts between endpoints and routes. Each drops either the endpoint or the route. */
export interface EndpointConflicts {
  /** Why a peer's endpoint is not used. */
  readonly lost: ReadonlyMap<PeerId, string>;
  /** Why a route is not accepted: the endpoints of all its connectors lie inside it. */
  readonly tunnelled: ReadonlyMap<Prefix, string>;
}

/** Inputs of {@link checkEndpoints} in addition to {@link RouteConstraints}. */
interface EndpointInputs {
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly options: Options;
  /** The prefixes of `--allow-route`. */
  readonly allowed: readonly Prefix[];
  readonly resolved: Resolved;
  /** True if the network's whole range leads into the tunnel on this host. */
  readonly takesRange: boolean;
  /** The subnets of the host. An endpoint in a subnet within a route is dialled in that subnet. */
  readonly connected: Underlay['connected'];
}

/**
 * Finds the endpoints in the network's range or in a route that the host accepts. They are not
 * used: otherwise a peer could withdraw the route from every host by announcing such an endpoint. A
 * route that this host refuses anyway takes no endpoint away, so a host in the same LAN still dials
 * it.
 *
 * Exception: if the endpoints of all connectors of a route lie inside it, the route is refused,
 * unless `--allow-route` has it. Endpoints are compared as in the map: verdicts are independent.
 */
export function checkEndpoints(question: EndpointInputs, refuse: RouteGuard): EndpointConflicts {
  const { map, self, allowed, resolved, takesRange, connected } = question;
  const isIn = (prefix: Prefix, host: Address) => covers(prefix, host) && !staysLocal(prefix, host, connected);
  const { index, hosts } = locateAll(map, resolved);
  const lost = new Map<PeerId, string>();
  const tunnelled = new Map<Prefix, string>();
  const lose = (prefix: Prefix, why: string, keeps: readonly Peer[] = []) => {
    for (const [peer, host] of hosts) {
      if (peer.id === self.id || peer.endpoint === null || lost.has(peer.id) || keeps.includes(peer)) continue;
      if (isIn(prefix, host)) lost.set(peer.id, `${describe(peer, host)} ${why}`);
    }
  };
  if (takesRange && index.findWithin(map.cidr) !== null) lose(map.cidr, `lies in the network's own range ${map.cidr}`);
  for (const prefix of wantedRoutes(question)) {
    // For most routes, this check is enough.
    if (index.findWithin(prefix) === null || refuse(prefix) !== null) continue;
    const servers = map.peers.filter((peer) => peer.id !== self.id && serves(peer, prefix));
    const [first] = servers;
    if (first === undefined) continue;
    const able = servers.find((peer) => !isIn(prefix, hosts.get(peer) ?? outside));
    if (able !== undefined) lose(prefix, `lies in the route ${prefix} of ${able.name}`);
    else if (allowed.includes(prefix)) lose(prefix, `lies in the route ${prefix} of ${first.name}`, servers);
    else tunnelled.set(prefix, `covers the endpoint of ${first.name}, which serves it (${hosts.get(first)})`);
  }
  return { lost, tunnelled };
}

/** Finds addresses to use last: in the range or an accepted route, or where no peer can listen. */
export function insideFinder(
  question: Omit<EndpointInputs, 'allowed' | 'resolved'>,
  refuse: RouteGuard,
): (address: Address) => boolean {
  const { map, takesRange, connected } = question;
  const isPeer = new Set(map.peers.map((peer) => peer.address));
  let taken: readonly Prefix[] | null = null;
  return (address) => {
    if (unusableAddress(address) !== null || isPeer.has(address)) return true;
    taken ??= [
      ...(takesRange ? [map.cidr] : []),
      ...wantedRoutes(question).filter((prefix) => refuse(prefix) === null),
    ];
    return taken.some((prefix) => covers(prefix, address) && !staysLocal(prefix, address, connected));
  };
}

/** An address in no route. It stands for an endpoint that is not known. */
const outside = '0.0.0.0' as Address;

/** Without default routes: the packet mark keeps packets to endpoints out of a full tunnel. */
function wantedRoutes({ map, self, options }: Pick<EndpointInputs, 'map' | 'self' | 'options'>): readonly Prefix[] {
  if (!options.acceptRoutes) return [];
  const own = new Set(assignedRoutes(map, self));
  return map.routes.filter((prefix) => !isDefaultRoute(prefix) && !own.has(prefix));
}

/** @param prefix a route of the network */
function serves({ type, given, routes, withdrawn }: Peer, prefix: Prefix): boolean {
  if (given) return given.allowedIps.includes(prefix);
  return type === 'connector' && (routes === null || routes.includes(prefix)) && !withdrawn.includes(prefix);
}

/** Returns the addresses of the peers, as far as they are known. */
function locateAll({ peers }: NetworkMap, resolved: Resolved) {
  const hosts = new Map(
    peers.flatMap((peer): [Peer, Address][] => {
      const located = locate(peer.endpoint, resolved);
      return located === null ? [] : [[peer, located.host]];
    }),
  );
  return { hosts, index: new PrefixIndex([...hosts.values()].map((host) => [hostPrefix(host), host])) };
}

/** The endpoint as the map has it, with its address if it is a name. */
function describe({ endpoint }: Peer, host: Address): string {
  const text = endpoint === null ? '' : formatEndpoint(endpoint);
  return endpoint?.host === host ? text : `${text} (${host})`;
}

/** Drops the unused endpoints. Their peers count as peers without an endpoint. */
export function withoutLost(map: NetworkMap, { lost }: EndpointConflicts): NetworkMap {
  if (lost.size === 0) return map;
  return { ...map, peers: map.peers.map((peer) => (lost.has(peer.id) ? { ...peer, endpoint: null } : peer)) };
}
