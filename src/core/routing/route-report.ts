import type { NetworkMap, Peer, PeerFailure } from '../map/model.ts';
import { isDefaultRoute, type Prefix } from '../net/cidr.ts';
import type { RouteGuard } from './public-prefixes.ts';
import type { RouteOwner } from './topology/route-owner.ts';

/** The state of a network route on this host. */
export interface RouteReport {
  readonly prefix: Prefix;
  readonly via: string | null;
  readonly state: 'taken' | 'standby' | 'served' | 'withdrawn' | 'refused' | 'missing';
  /** The reason for the state. For a route that is taken: the traffic that does not use it. */
  readonly reason: string | null;
  /** The prefix behind this host that a route stands for that it serves; absent if not mapped. */
  readonly local?: Prefix;
}

interface ReportedNetwork {
  readonly map: NetworkMap;
  readonly failed: readonly PeerFailure[];
  /** Routes that the guard accepts, but that the endpoints of their connectors rule out. */
  readonly tunnelled: ReadonlyMap<Prefix, string>;
}

/** Reports a route: one entry for its state, and one for each connector that would take over. */
export function reportRoute(
  { prefix, via, hop, standby, note }: RouteOwner,
  { map, failed, tunnelled }: ReportedNetwork,
  refuse: RouteGuard,
): RouteReport[] {
  const name = via?.name ?? null;
  if (note === 'served here') return [{ prefix, via: null, state: 'served', reason: null }];
  if (note === 'withdrawn here') return [{ prefix, via: null, state: 'withdrawn', reason: null }];
  if (note === 'not accepted') return [{ prefix, via: name, state: 'refused', reason: 'not accepted' }];
  if (hop === null) return [{ prefix, via: name, state: 'missing', reason: note && explainMissing(prefix, map) }];
  const reason = refuse(prefix) ?? tunnelled.get(prefix) ?? null;
  if (reason !== null) return [{ prefix, via: name, state: 'refused', reason }];
  const health = (peer: Peer | null) => {
    const failure = failed.find((each) => each.peer === peer?.id);
    return failure ? (failure.back ? 'answers again, but is not trusted yet' : 'does not answer') : null;
  };
  const taken: RouteReport = {
    prefix,
    via: name,
    state: 'taken',
    reason: isDefaultRoute(prefix) ? null : health(via),
  };
  return [
    taken,
    ...standby.map((peer) => ({ prefix, via: peer.name, state: 'standby' as const, reason: health(peer) })),
  ];
}

const withoutEndpoint = 'no connector in reach';

function explainMissing(prefix: Prefix, map: NetworkMap): string {
  const serving = map.peers.filter((peer) => serves(peer, prefix) && peer.endpoint === null);
  if (serving.length > 0) {
    const names = serving.map(({ name }) => name).join(', ');
    return `${withoutEndpoint}; ${names} ${serving.length === 1 ? 'has' : 'have'} no endpoint`;
  }
  const withdrawn = map.peers.filter((peer) => peer.withdrawn.includes(prefix)).map((peer) => peer.name);
  return withdrawn.length === 0 ? 'no connector' : `no connector; out of service at ${withdrawn.join(', ')}`;
}

function serves({ type, routes, withdrawn }: Peer, prefix: Prefix): boolean {
  return type === 'connector' && (routes?.includes(prefix) ?? true) && !withdrawn.includes(prefix);
}

/** How to repair a route without a connector; null if another cause must be repaired first. */
export function remedyOfMissing(reason: string): string | null {
  if (reason.startsWith(withoutEndpoint))
    return 'give the connector an endpoint, on its host: cpn set --endpoint HOST:PORT';
  return reason.startsWith('no connector') ? 'start a connector for it, or put one back into service' : null;
}

/** Describes what bypasses a full tunnel. `isDnsInside`: routes lead to all resolvers. */
export function explainFullTunnel(rejectsIpv6: boolean, isDnsInside: boolean): string {
  if (isDnsInside) return rejectsIpv6 ? 'IPv6 is rejected' : 'IPv6 goes outside the tunnel';
  return rejectsIpv6
    ? 'DNS queries to the resolver go outside the tunnel; IPv6 is rejected'
    : 'IPv6 and DNS queries to the resolver go outside the tunnel';
}

/** What an operator can do about a refused route; null if no setting accepts it. */
export function remedyOfRefused(
  { prefix, reason }: Pick<RouteReport, 'prefix' | 'reason'>,
  link: string,
): string | null {
  if (reason === 'not accepted') return `"cpn set ${link} --accept-routes" accepts it`;
  // No flag accepts the network's own addresses, or a route with its connectors' endpoints.
  if (reason === null || /^(lies within|covers the endpoint|is mapped to)|, which this host serves as /.test(reason))
    return null;
  return `if this is intended, "cpn set ${link} --allow-route ${prefix}" accepts it`;
}

/** Reports a refused prefix without a connector: the network's range, or a route within it. */
export function reportRefused(prefix: Prefix, reason: string): RouteReport {
  return { prefix, via: null, state: 'refused', reason };
}
