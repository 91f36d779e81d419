import type { Actual, Route, Underlay } from '../host-state/actual.ts';
import { tunnelTable } from '../host-state/marks.ts';
import { covers, formatInterfaceAddress, isDefaultRoute, lengthOf, maskPrefix, type Prefix } from '../net/cidr.ts';
import { isRouteTable, isTableUsed } from './route-table.ts';

/** A prefix that leads past the tunnel, and the link that it leads to. */
export interface BypassRoute {
  readonly prefix: Prefix;
  readonly link: string;
}

/**
 * The widest part of `prefix` with a more specific route past the tunnel, which the kernel prefers,
 * or null. Always null for a default route, which takes only packets without another route.
 */
export function findBypassRoute(prefix: Prefix, underlay: Underlay): BypassRoute | null {
  if (isDefaultRoute(prefix)) return null;
  const parts = otherRoutes(underlay).filter(
    (other) => lengthOf(other.prefix) > lengthOf(prefix) && covers(prefix, other.prefix),
  );
  return parts.toSorted((a, b) => lengthOf(a.prefix) - lengthOf(b.prefix))[0] ?? null;
}

/** Returns the prefixes into the interface that have a bypass route, with that route. */
export function findBypassRoutes(
  prefixes: readonly Prefix[],
  actual: Pick<Actual, 'routes' | 'rules' | 'onLink'>,
  underlay: Underlay,
): ReadonlyMap<Prefix, BypassRoute> {
  return new Map(
    prefixes
      .filter((prefix) => isRoutedInto(prefix, actual))
      .flatMap((prefix): [Prefix, BypassRoute][] => {
        const bypass = findBypassRoute(prefix, underlay);
        return bypass ? [[prefix, bypass]] : [];
      }),
  );
}

/** Without the local subnets, which are expected to stay local within a route. */
export function withoutSubnets(underlay: Underlay): Underlay {
  return { ...underlay, connected: [] };
}

/** Describes a bypass route after the prefix that contains it. */
export function describeBypassRoute({ prefix, link }: BypassRoute): string {
  return `${prefix} of it leads to ${link}`;
}

/** True if `prefix` has a route into the interface, or lies in its address's range. */
export function isRoutedInto(prefix: Prefix, actual: Pick<Actual, 'routes' | 'rules' | 'onLink'>): boolean {
  return ownRoutes(actual).includes(prefix) || actual.onLink.some((range) => covers(range, prefix));
}

/** Explains why packets to `prefix` do not all enter the interface `link`; null if they do. */
export function explainBypassRoute(prefix: Prefix, link: string, actual: Actual): string | null {
  const thrown = actual.throwRoutes?.find((route) => covers(route.prefix, prefix));
  if (thrown && findOwn(actual).some(({ table }) => table === thrown.table)) return `${prefix} stays outside ${link}`;
  const routes = findOwn(actual).filter((route) => covers(route.prefix, prefix));
  if (routes.length === 0) return `no route to ${prefix} leads into ${link}`;
  const past = otherRoutes(actual.underlay).find(
    (route) => covers(route.prefix, prefix) && routes.every((own) => isPreferred(route, own)),
  );
  if (past) return `${prefix} leads to ${past.link}, by the route to ${past.prefix}`;
  const bypass = findBypassRoute(prefix, withoutSubnets(actual.underlay));
  return bypass && `of ${prefix}, ${bypass.prefix} leads to ${bypass.link}`;
}

/** The main table wins over those of accepted routes, then the longer prefix, the lower metric. */
function isPreferred(one: HostRoute, other: HostRoute): boolean {
  const longer = lengthOf(one.prefix) - lengthOf(other.prefix);
  if (isRouteTable(other.table ?? null) && lengthOf(one.prefix) > 0) return true;
  return longer > 0 || (longer === 0 && (one.metric ?? 0) < (other.metric ?? 0));
}

/** Routes into the interface. Its range has the kernel's own metric, which nothing precedes. */
function findOwn({ routes, rules, onLink }: Pick<Actual, 'routes' | 'rules' | 'onLink'>): readonly HostRoute[] {
  return [...routes.filter((route) => isTableReached(route, rules)), ...onLink.map((prefix) => ({ prefix }))];
}

interface HostRoute {
  readonly prefix: Prefix;
  readonly metric?: number | null;
  readonly table?: string;
}

function otherRoutes({ connected, routed }: Underlay): readonly (BypassRoute & HostRoute)[] {
  return [...routed, ...connected];
}

/**
 * The prefixes that lead into the interface: its routes, and the range of its address. The range
 * counts even while its route is missing: what the host reaches through the tunnel stays the same.
 */
export function ownRoutePrefixes(actual: Pick<Actual, 'link' | 'routes' | 'rules'>): Prefix[] {
  const { link } = actual;
  const ranges = link?.up ? link.addresses.map((address) => maskPrefix(formatInterfaceAddress(address))) : [];
  return [...ownRoutes(actual), ...ranges];
}

/** The routes into the interface in tables that the policy rules use. */
function ownRoutes({ routes, rules }: Pick<Actual, 'routes' | 'rules'>): Prefix[] {
  return routes.filter((route) => isTableReached(route, rules)).map(({ prefix }) => prefix);
}

function isTableReached({ prefix, table }: Route, rules: Actual['rules']): boolean {
  if (isRouteTable(table)) return isTableUsed(table, rules);
  return table === (isDefaultRoute(prefix) ? tunnelTable : 'main');
}
