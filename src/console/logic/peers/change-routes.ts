import type { ChangePeer, Peer } from '../../../contract/peer.ts';

/**
 * The fields that set a connector's routes, null for all; none if nothing changes. They include the
 * routes that the user saw, so that the control plane refuses the change if another admin changed
 * them meanwhile.
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

const isSameSet = (a: readonly string[], b: readonly string[]) => a.toSorted().join() === b.toSorted().join();
