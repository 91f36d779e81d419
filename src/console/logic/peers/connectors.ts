import type { Health } from '../../../contract/health.ts';
import type { ChangePeer, Peer } from '../../../contract/peer.ts';
import { isListedConnector } from '../../../core/export/device-profile.ts';
import { servesRoute } from '../../../core/export/find-losses.ts';
import { compareConnectors } from '../../../core/map/connector-rank.ts';

/** The connectors of a route, in the order in which hosts prefer them while all are healthy. */
export function findConnectors(peers: readonly Peer[], route: string): Peer[] {
  return peers.filter((peer) => servesRoute(peer, route)).sort(compareConnectors);
}

/** The connectors that forward between peers of the network, in the same order. */
export function findRelays(peers: readonly Peer[], range: string): Peer[] {
  return peers
    .filter((peer) => isListedConnector(peer) && !(peer.withdrawn ?? []).includes(range))
    .sort(compareConnectors);
}

/** A connector, and the prefix behind it that a route stands for. */
export interface MappedLan {
  readonly peer: number;
  readonly local: string;
}

/** The LANs that connectors report for a route that they map to other addresses. */
export function findMappedLans(health: Health | null, connectors: readonly Peer[], route: string): MappedLan[] {
  return connectors.flatMap(({ id }) => {
    const reported = health?.peers.find((peer) => peer.id === id)?.map ?? [];
    return reported.filter((each) => each.route === route).map(({ local }) => ({ peer: id, local }));
  });
}

/** What a phone dials: a connector, all peers with an endpoint, or a connector that is gone. */
export type Dialled = Peer | 'all' | 'gone';

/** Null chooses the first. A connector is gone if removed, or if phones can no longer dial it. */
export function findDialled(chosen: string | null, connectors: readonly Peer[]): Dialled {
  const [first] = connectors;
  if (chosen === 'all') return 'all';
  if (chosen === null) return first ?? 'all';
  return connectors.find(({ id }) => String(id) === chosen) ?? 'gone';
}

/**
 * Null for all routes; no fields if nothing changes. Includes the routes that the user saw: the
 * control plane refuses the change if another admin changed them meanwhile.
 */
export function changeRoutes(
  { routes, withdrawn = [] }: Peer,
  range: string,
  wanted: readonly string[] | null,
): Pick<ChangePeer, 'routes' | 'expected_routes'> {
  const isSame = wanted === null || routes === undefined ? wanted === (routes ?? null) : isSameSet(wanted, routes);
  if (isSame) return {};
  // Withdrawn routes still count as routes of the connector.
  const routesShown = routes === undefined ? null : [...routes, ...withdrawn.filter((each) => each !== range)];
  return { routes: wanted === null ? null : [...wanted], expected_routes: routesShown };
}

/** No fields if the tags stay the same, in any order. */
export function changeTags({ tags = [] }: Peer, wanted: readonly string[]): Pick<ChangePeer, 'tags'> {
  return isSameSet(tags, wanted) ? {} : { tags: [...new Set(wanted)] };
}

const isSameSet = (a: readonly string[], b: readonly string[]) => a.toSorted().join() === b.toSorted().join();
