import type { ChangePeer, Peer } from '../../../contract/peer.ts';

/**
 * The fields that give a connector other routes, null for all; none if it has these already. The routes that the user saw go with them:
 * the control plane refuses the change if another admin changed them meanwhile.
 */
export function changeRoutes(
  { routes, withdrawn = [] }: Peer,
  range: string,
  wanted: readonly string[] | null,
): Pick<ChangePeer, 'routes' | 'expected_routes'> {
  const isSame = wanted === null || routes === undefined ? wanted === (routes ?? null) : isSameSet(wanted, routes);
  if (isSame) return {};
  // The connector takes routes out of service on its own: they count as its routes.
  const routesShown = routes === undefined ? null : [...routes, ...withdrawn.filter((each) => each !== range)];
  return { routes: wanted === null ? null : [...wanted], expected_routes: routesShown };
}

const isSameSet = (a: readonly string[], b: readonly string[]) => a.toSorted().join() === b.toSorted().join();
