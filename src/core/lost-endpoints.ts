import { type Address, covers, hostPrefix, type Prefix } from './cidr.ts';
import { formatEndpoint } from './endpoint.ts';
import { isDefaultRoute } from './full-tunnel.ts';
import { type Ground, refuse } from './guard.ts';
import type { NetworkMap, Options, Peer, PeerId } from './model.ts';
import { perObject } from './per-object.ts';
import { PrefixIndex } from './prefix-index.ts';
import { locate } from './reach-outside.ts';
import type { Resolved } from './resolved.ts';
import { assignedRoutes } from './route-owner.ts';

/** Which endpoints and which routes cannot be used together, and which of the two loses. */
export interface EndpointVerdicts {
  /** Why a peer's endpoint is not used, by the peer. */
  readonly lost: ReadonlyMap<PeerId, string>;
  /** Why a route is not taken: all connectors that serve it are reached inside it. */
  readonly trapped: ReadonlyMap<Prefix, string>;
}

/** What the verdicts depend on, beside what is around the host. */
interface Question {
  readonly map: NetworkMap;
  readonly self: Peer;
  readonly options: Options;
  readonly resolved: Resolved;
  /** Whether the network's range as a whole is taken here. */
  readonly takesRange: boolean;
}

/**
 * An endpoint that lies in the network's range, or in a route that this host takes otherwise, loses: a peer could withdraw the route
 * from every host by naming such an endpoint. A route that this host refuses for its own reasons takes no endpoint away; so a host in the
 * same LAN still dials it.
 *
 * The one exception is the route that would be lost with the endpoint: where all connectors that serve it are reached inside it,
 * the route is refused, unless a person lets it through. Endpoints are compared as the map has them, so that no verdict depends
 * on another.
 */
export function judgeEndpoints(question: Question, ground: Ground): EndpointVerdicts {
  const { map, self, resolved, takesRange } = question;
  const { index, hosts } = locateAll(map)(resolved);
  const lost = new Map<PeerId, string>();
  const trapped = new Map<Prefix, string>();
  const lose = (prefix: Prefix, why: string, keeps: readonly Peer[] = []) => {
    for (const [peer, host] of hosts) {
      if (peer.id === self.id || peer.endpoint === null || lost.has(peer.id) || keeps.includes(peer)) continue;
      if (covers(prefix, host)) lost.set(peer.id, `${describe(peer, host)} ${why}`);
    }
  };
  if (takesRange && index.findWithin(map.cidr) !== null) lose(map.cidr, `lies in the network's own range ${map.cidr}`);
  for (const prefix of wantedRoutes(question)) {
    // For most routes this is all that is asked.
    if (index.findWithin(prefix) === null || refuse(prefix, ground) !== null) continue;
    const servers = map.peers.filter((peer) => peer.id !== self.id && serves(map, peer, prefix));
    const [first] = servers;
    if (first === undefined) continue;
    const able = servers.find((peer) => !covers(prefix, hosts.get(peer) ?? outside));
    if (able !== undefined) lose(prefix, `lies in the route ${prefix} of ${able.name}`);
    else if (ground.allowed.includes(prefix)) lose(prefix, `lies in the route ${prefix} of ${first.name}`, servers);
    else trapped.set(prefix, `covers the endpoint of ${first.name}, which serves it (${hosts.get(first)})`);
  }
  return { lost, trapped };
}

/** An address in no route: an endpoint that is not known is in none. */
const outside = '0.0.0.0' as Address;

/** The routes that this host would take: a full tunnel keeps out, by the mark, what goes to endpoints. */
function wantedRoutes({ map, self, options }: Question): readonly Prefix[] {
  if (!options.acceptRoutes) return [];
  const own = new Set(assignedRoutes(map, self));
  return map.routes.filter((prefix) => !isDefaultRoute(prefix) && !own.has(prefix));
}

function serves(map: NetworkMap, peer: Peer, prefix: Prefix): boolean {
  if (peer.given) return peer.given.allowedIps.includes(prefix);
  return assignedRoutes(map, peer).includes(prefix) && !peer.withdrawn.includes(prefix);
}

/** Where the peers are reached as far as that is known. */
const locateAll = perObject(({ peers }: NetworkMap) =>
  perObject((resolved: Resolved) => {
    const hosts = new Map(
      peers.flatMap((peer): [Peer, Address][] => {
        const located = locate(peer.endpoint, resolved);
        return located === null ? [] : [[peer, located.host]];
      }),
    );
    return { hosts, index: new PrefixIndex([...hosts.values()].map((host) => [hostPrefix(host), host])) };
  }),
);

/** The endpoint as the map has it, with its address where it is a name. */
function describe({ endpoint }: Peer, host: Address): string {
  const text = endpoint === null ? '' : formatEndpoint(endpoint);
  return endpoint?.host === host ? text : `${text} (${host})`;
}

/** The map without the endpoints that lost; a peer is then reached as one that has none. */
export function withoutLost(map: NetworkMap, { lost }: EndpointVerdicts): NetworkMap {
  if (lost.size === 0) return map;
  return { ...map, peers: map.peers.map((peer) => (lost.has(peer.id) ? withoutEndpoint(peer) : peer)) };
}

const withoutEndpoint = perObject((peer: Peer): Peer => ({ ...peer, endpoint: null }));
