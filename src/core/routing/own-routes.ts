import type { Actual, Route } from '../host-state/actual.ts';
import { routeProtocol, tunnelTable } from '../host-state/marks.ts';
import { familyOf, isDefaultRoute, lengthOf, onLinkRange, type Prefix } from '../net/cidr.ts';
import type { TunnelRoutes } from './place-route.ts';
import { placeRoutes, type RoutePlacement, usualMetric } from './place-route.ts';
import { isRouteTable } from './route-table.ts';

/**
 * What a plan does with a route into our interface:
 * - `kept`: the route is ours, or equal in effect to one of ours.
 * - `altered`: it replaces one of ours and gives packets another next hop or source.
 * - `surplus`: it was ours, or contradicts one of ours.
 * - `foreign`: it is not ours.
 */
export type RouteStanding = 'kept' | 'altered' | 'surplus' | 'foreign';

export function routeClassifier(desired: PlannedRoutes, placeOf: RoutePlacement): (route: Route) => RouteStanding {
  const wanted = new Set(desired.routes);
  return (route) => classifyRoute(route, desired, wanted, placeOf);
}

function classifyRoute(
  route: Route,
  { config, previous }: PlannedRoutes,
  wanted: ReadonlySet<Prefix>,
  placeOf: RoutePlacement,
): RouteStanding {
  const { prefix, table, protocol } = route;
  const isOurs = protocol === routeProtocol;
  const isWanted = wanted.has(prefix);
  const range = { table: 'main', metric: null };
  const place = isWanted ? placeOf(prefix) : prefix === onLinkRange(config.address) ? range : null;
  if (place?.table === table) return classifyInPlace(route, place.metric);
  if (place && isRouteTable(place.table) && table === 'main' && !isOurs && protocol !== 'boot') {
    // The main table is evaluated before the table of accepted routes.
    const standing = classifyInPlace(route, null);
    return standing === 'altered' ? 'surplus' : standing;
  }
  if (table !== 'main' && table !== tunnelTable && !isRouteTable(table)) return 'foreign';
  if (isOurs) return 'surplus';
  // On our own interface, wg-quick's routes (`boot`) count as ours.
  const isMadeForOurs = table === tunnelTable || isWanted || previous.includes(prefix);
  return protocol === 'boot' && isMadeForOurs ? 'surplus' : 'foreign';
}

/** @param wanted the metric of our route; null if any metric will do */
function classifyInPlace({ protocol, deviation, tos, metric, isOutdone }: Route, wanted: number | null): RouteStanding {
  const isOurs = protocol === routeProtocol;
  const isLost = isOurs ? 'surplus' : 'foreign';
  const hasMetric = metric === null || wanted === null || metric === wanted;
  if (deviation !== undefined) {
    if (isOutdone) return isLost;
    return tos === undefined && hasMetric ? 'altered' : 'surplus';
  }
  if (tos !== undefined) return isLost;
  // The route of a routing daemon has the daemon's metric.
  if (hasMetric || !(isOurs || protocol === 'boot')) return 'kept';
  return isOurs || metric < wanted ? 'surplus' : 'foreign';
}

type PlannedRoutes = Pick<TunnelRoutes, 'config' | 'routes' | 'previous'>;

/** A route into our interface that is not ours. It stays until an operator removes it. */
export interface ForeignRoute {
  readonly prefix: Prefix;
  readonly table: string;
  readonly protocol: string;
  /** The problem that the route causes; null if it takes nothing away from the host. */
  readonly problem: string | null;
  readonly remedy: string;
}

/** Finds the routes into our interface that are not ours. */
export function findForeignRoutes(desired: TunnelRoutes, actual: Actual): ForeignRoute[] {
  const classify = routeClassifier(desired, placeRoutes(desired, actual));
  return actual.routes
    .filter((route) => classify(route) === 'foreign')
    .map((route) => {
      const { prefix, table, protocol } = route;
      return { prefix, table, protocol, problem: findProblem(route), remedy: nameRemoval(route, desired.link) };
    });
}

/** A default route of another table has an effect only if a rule leads to that table. */
function findProblem({ prefix, table, isOutdone }: Route): string | null {
  if (!isDefaultRoute(prefix) || table !== 'main' || isOutdone) return null;
  return 'it sends into the tunnel what has no other route, and no --allow-route allows that';
}

function nameRemoval({ prefix, table, metric, tos }: Route, link: string): string {
  const family = familyOf(prefix) === 6 && lengthOf(prefix) === 0 ? ' -6' : '';
  const what = lengthOf(prefix) === 0 ? 'default' : prefix;
  const words = [
    ...(tos === undefined ? [] : ['tos', tos]),
    ...(table === 'main' ? [] : ['table', table]),
    ...(metric === null || metric === usualMetric(prefix) ? [] : ['metric', `${metric}`]),
  ];
  return [`ip${family} route del`, what, 'dev', link, ...words].join(' ');
}
