import type { Route } from '../../core/host-state/actual.ts';
import { kernelProtocol } from '../../core/host-state/marks.ts';
import type { Prefix } from '../../core/net/cidr.ts';
import type { ShownByIp, ShownRoute } from './ip/show.ts';

/** Returns the routes of all tables into an interface, except those that the kernel created. */
export function findRoutes({ links, routes }: ShownByIp, name: string): Route[] {
  const own = links.find((link) => link.name === name)?.addresses.map(({ address }) => address) ?? [];
  const into = routes.filter((route) => route.links.includes(name) && route.protocol !== kernelProtocol);
  const least = leastMetrics(routes);
  return into.map((route) => {
    const { prefix, table, protocol, metric, tos } = route;
    const deviation = describeDeviation(route, name, own);
    return {
      prefix,
      table,
      protocol,
      metric,
      ...(tos !== null && { tos }),
      ...(deviation !== null && { deviation }),
      ...(tos === null && isOutdone(route, least) && { isOutdone: true as const }),
    };
  });
}

/**
 * Returns the subnets of the interface's addresses that are routed into it. In a VRF, the kernel's
 * own routes are outside the main table.
 */
export function findOnLink({ links, routes }: ShownByIp, name: string): Prefix[] {
  const link = links.find((each) => each.name === name);
  const ranges = new Set(link?.addresses.map(({ subnet }) => subnet));
  const own = link?.addresses.map(({ address }) => address) ?? [];
  const leading = routes.filter(
    (route) =>
      ranges.has(route.prefix) &&
      route.links.includes(name) &&
      (route.table === 'main' || route.protocol === kernelProtocol) &&
      describeDeviation(route, name, own) === null,
  );
  return [...new Set(leading.map(({ prefix }) => prefix))];
}

function describeDeviation({ links, source }: ShownRoute, name: string, own: readonly string[]): string | null {
  const others = links.filter((link) => link !== name);
  const words = [
    ...(others.length === 0 ? [] : [`shared with ${others.join(', ')}`]),
    ...(source === null || own.includes(source) ? [] : [`src ${source}`]),
  ];
  return words.length === 0 ? null : words.join(', ');
}

/** The kernel uses the route with the lowest metric among several routes to one prefix. */
function isOutdone({ prefix, table, metric }: ShownRoute, least: ReadonlyMap<string, number>): boolean {
  return metric > (least.get(`${table} ${prefix}`) ?? 0);
}

/** The lowest metric per table and prefix. Leaves out routes for one type of service. */
function leastMetrics(routes: readonly ShownRoute[]): ReadonlyMap<string, number> {
  const least = new Map<string, number>();
  for (const { prefix, table, metric, tos } of routes) {
    const key = `${table} ${prefix}`;
    if (tos === null) least.set(key, Math.min(metric, least.get(key) ?? Number.POSITIVE_INFINITY));
  }
  return least;
}
