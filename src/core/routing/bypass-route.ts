import type { Actual, Route, Underlay } from '../host-state/actual.ts';
import { tunnelTable } from '../host-state/marks.ts';
import { covers, isDefaultRoute, lengthOf, maskPrefix, type Prefix } from '../net/cidr.ts';
import { formatInterfaceAddress } from '../net/interface-address.ts';
import { isRouteTable, isTableUsed } from './route-table.ts';

/** A prefix that leads past the tunnel, and where to. */
export interface BypassRoute {
  readonly prefix: Prefix;
  readonly link: string;
}

/**
 * The widest part of `prefix` for which this host has a more specific route past the tunnel, which the kernel prefers; null
 * when all of it goes one way. A full tunnel is meant to take only what has no other route, and has no detours.
 */
export function findBypassRoute(prefix: Prefix, underlay: Underlay): BypassRoute | null {
  if (isDefaultRoute(prefix)) return null;
  const parts = otherRoutes(underlay).filter(
    (other) => lengthOf(other.prefix) > lengthOf(prefix) && covers(prefix, other.prefix),
  );
  return parts.toSorted((a, b) => lengthOf(a.prefix) - lengthOf(b.prefix))[0] ?? null;
}

/** Of these prefixes, those that lead into the interface, each with the part of it that a more specific route diverts. */
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

/** The same host without its local subnets: such a one within a route is expected to stay local. */
export function withoutSubnets(underlay: Underlay): Underlay {
  return { ...underlay, connected: [] };
}

/** A detour as a part of the prefix that was just named. */
export function describeBypassRoute({ prefix, link }: BypassRoute): string {
  return `${prefix} of it leads to ${link}`;
}

/** True when `prefix` has a route of its own into the interface, or lies in the range of the interface's address, which has one. */
export function isRoutedInto(prefix: Prefix, actual: Pick<Actual, 'routes' | 'rules' | 'onLink'>): boolean {
  return ownRoutes(actual).includes(prefix) || actual.onLink.some((range) => covers(range, prefix));
}

/** Says why not every packet to `prefix` is sent into the interface `link`; null when all are. */
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

/** The main table comes before one of accepted routes. In one table the longer prefix wins, and of two equal ones the lower metric. */
function isPreferred(one: HostRoute, other: HostRoute): boolean {
  const longer = lengthOf(one.prefix) - lengthOf(other.prefix);
  if (isRouteTable(other.table ?? null) && lengthOf(one.prefix) > 0) return true;
  return longer > 0 || (longer === 0 && (one.metric ?? 0) < (other.metric ?? 0));
}

/** The range of an address has the metric that the kernel gives it, which nothing precedes. */
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
 * What leads into our interface: its routes, and the range of its address. The latter also while the route to it is gone: that changes
 * nothing of what the host reaches through the tunnel.
 */
export function ownRoutePrefixes(actual: Pick<Actual, 'link' | 'routes' | 'rules'>): Prefix[] {
  const { link } = actual;
  const ranges = link?.up ? link.addresses.map((address) => maskPrefix(formatInterfaceAddress(address))) : [];
  return [...ownRoutes(actual), ...ranges];
}

/** The routes into our interface in tables that our rules lead to. */
function ownRoutes({ routes, rules }: Pick<Actual, 'routes' | 'rules'>): Prefix[] {
  return routes.filter((route) => isTableReached(route, rules)).map(({ prefix }) => prefix);
}

function isTableReached({ prefix, table }: Route, rules: Actual['rules']): boolean {
  if (isRouteTable(table)) return isTableUsed(table, rules);
  return table === (isDefaultRoute(prefix) ? tunnelTable : 'main');
}
