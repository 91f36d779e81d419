import type { Actual, Underlay } from '../host-state/actual.ts';
import { acceptedMetric, routeProtocol, tunnelTable } from '../host-state/marks.ts';
import { familyOf, isDefaultRoute, lengthOf, type Prefix } from '../net/cidr.ts';
import { PrefixIndex } from '../net/prefix-index.ts';
import type { TunnelConfig } from '../wg-quick/parse.ts';
import type { KeptOutside } from './kept-outside.ts';
import { findOurRules } from './tunnel-rules.ts';

export interface TableAndMetric {
  readonly table: string;
  readonly metric: number;
}

/** Returns the table and the metric for a route into the interface. */
export type RoutePlacement = (prefix: Prefix) => TableAndMetric;

/** The desired routes into an interface. */
export interface TunnelRoutes {
  readonly link: string;
  readonly config: Pick<TunnelConfig, 'address'>;
  /** Prefixes that lead into the interface in addition to the range of the interface's address. */
  readonly routes: readonly Prefix[];
  /** Prefixes of the last wg-quick file only: wg-quick's routes to them are removed. */
  readonly previous: readonly Prefix[];
  /** The prefixes of `--allow-route`, which precede equal routes of the host. */
  readonly allowed: readonly Prefix[];
  /** The routing table for accepted routes; null if they are in the main table. */
  readonly routeTable: string | null;
  /** Addresses in routes of that table that are kept outside the tunnel. */
  readonly keptOutside: readonly KeptOutside[];
  /** Interfaces of networks joined later, whose routes to the same prefixes this network takes. */
  readonly newerLinks: readonly string[];
}

/**
 * Decides the table of each route into the interface:
 * - A default route has its own table, so that the host keeps its default route.
 * - An accepted route is in its network's table. The kernel reads it after the local networks in
 *   the main table, whatever their prefix length is.
 * - In the main table: a route of `--allow-route`, and a route that the network's table would lose
 *   to a route that is no local network.
 */
export function placeRoutes(
  desired: Pick<TunnelRoutes, 'routeTable' | 'newerLinks' | 'allowed'>,
  host: Pick<Actual, 'rules' | 'routes' | 'underlay'>,
): RoutePlacement {
  const { routeTable } = desired;
  // Rules of other programs may precede ours, or be meant to precede the main table.
  const own = routeTable !== null && findOurRules(host.rules).length === host.rules.length ? routeTable : null;
  const shadows = own === null ? null : indexShadows(host.underlay, desired.newerLinks);
  // A lookup finds our own route there, and not the wider route that is the reason for it.
  const stays = host.underlay.isSampled ? findInMain(host.routes) : none;
  return (prefix) => {
    if (isDefaultRoute(prefix)) return { table: tunnelTable, metric: usualMetric(prefix) };
    const inMain = { table: 'main', metric: metricOf(prefix, desired) };
    if (own === null || familyOf(prefix) === 6 || desired.allowed.includes(prefix)) return inMain;
    return stays.has(prefix) || shadows?.(prefix) ? inMain : { table: own, metric: usualMetric(prefix) };
  };
}

const none: ReadonlySet<Prefix> = new Set();

function findInMain(routes: Actual['routes']): ReadonlySet<Prefix> {
  const own = routes.filter(({ table, protocol }) => table === 'main' && protocol === routeProtocol);
  return new Set(own.map(({ prefix }) => prefix));
}

/** Checks whether the main table leads a whole prefix elsewhere by a route of no local network. */
function indexShadows({ connected, routed, refusing = [] }: Underlay, newerLinks: readonly string[]) {
  // Network configuration programs add the route to an interface's subnet themselves. It still
  // counts as the local network.
  const local = new Set(connected.map(({ prefix, link }) => `${prefix} ${link}`));
  const isLocal = ({ prefix, link }: Underlay['routed'][number]) => local.has(`${prefix} ${link}`);
  const wide = [
    ...routed.filter((routed) => lengthOf(routed.prefix) > 0 && (newerLinks.includes(routed.link) || !isLocal(routed))),
    ...connected.filter(({ link }) => newerLinks.includes(link)),
  ].map(({ prefix }) => prefix);
  const index = new PrefixIndex([...wide, ...refusing].map((prefix) => [prefix, prefix]));
  return (prefix: Prefix) => index.findCover(prefix) !== null;
}

/**
 * An accepted route loses to a local network's route to the same prefix, even before a pass refuses
 * it. A route of `--allow-route` wins. A default route is alone in its table.
 */
export function metricOf(prefix: Prefix, { allowed }: Pick<TunnelRoutes, 'allowed'>): number {
  return isDefaultRoute(prefix) || allowed.includes(prefix) ? usualMetric(prefix) : acceptedMetric;
}

/** The metric of a route added without one; IPv6: IP6_RT_PRIO_USER of linux/ipv6_route.h. */
export function usualMetric(prefix: Prefix): number {
  return familyOf(prefix) === 4 ? 0 : 1024;
}
