import type { Actual, Underlay } from '../host-state/actual.ts';
import { acceptedMetric, routeProtocol, tunnelTable } from '../host-state/marks.ts';
import { familyOf, isDefaultRoute, lengthOf, type Prefix } from '../net/cidr.ts';
import { PrefixIndex } from '../net/prefix-index.ts';
import type { TunnelConfig } from '../wg-quick/tunnel-config.ts';
import type { KeptOutside } from './kept-outside.ts';
import { findOurRules } from './tunnel-rules.ts';

/** Where a route into the interface stands, and with which metric. */
export interface TableAndMetric {
  readonly table: string;
  readonly metric: number;
}

/** Says where a route into the interface belongs. */
export type RoutePlacement = (prefix: Prefix) => TableAndMetric;

/** The routes into an interface that a pass works towards. */
export interface TunnelRoutes {
  readonly link: string;
  readonly config: Pick<TunnelConfig, 'address'>;
  /** Prefixes that lead into the interface in addition to the range of its own address. */
  readonly routes: readonly Prefix[];
  /** Prefixes of the last wg-quick file that no longer lead into the interface: wg-quick's routes to them are removed. */
  readonly previous: readonly Prefix[];
  /** Prefixes that an operator allows, which come before equal ones of the host. */
  readonly allowed: readonly Prefix[];
  /** The routing table for accepted routes; null where they are in the main table. */
  readonly routeTable: string | null;
  /** Addresses in routes of that table that are kept outside the tunnel. */
  readonly keptOutside: readonly KeptOutside[];
  /** Interfaces of this host's later networks, whose routes to the same prefixes are taken over. */
  readonly newerLinks: readonly string[];
}

/**
 * Says where each route into the interface belongs. A default route has a table of its own, so that the host keeps its own. An accepted
 * route has its network's table, which is asked after the local networks in the main table, whatever their length is. Where that table
 * would lose the route to something that is no local network, and for what a person lets through, it is the main table.
 */
export function placeRoutes(
  desired: Pick<TunnelRoutes, 'routeTable' | 'newerLinks' | 'allowed'>,
  host: Pick<Actual, 'rules' | 'routes' | 'underlay'>,
): RoutePlacement {
  const { routeTable } = desired;
  // Rules of others may be asked before ours, or be meant to be asked before the main table.
  const own = routeTable !== null && findOurRules(host.rules).length === host.rules.length ? routeTable : null;
  const shadows = own === null ? null : indexShadows(host.underlay, desired.newerLinks);
  // A lookup finds our own route there, and not the wider one that is the reason for it.
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

/** Tells of a prefix whether the main table leads it elsewhere as a whole, by a route that is no local network's. */
function indexShadows({ connected, routed, refusing = [] }: Underlay, newerLinks: readonly string[]) {
  // Programs that configure a network card make the route to its subnet themselves; it is the local network's all the same.
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
 * The metric of a route into the interface. An accepted route loses to a local network's route to the same prefix, also before a pass
 * refuses it. A route that a person lets through wins; a default route is alone in its table.
 */
export function metricOf(prefix: Prefix, { allowed }: Pick<TunnelRoutes, 'allowed'>): number {
  return isDefaultRoute(prefix) || allowed.includes(prefix) ? usualMetric(prefix) : acceptedMetric;
}

/** The metric of a route that is added without one: IPv6 has IP6_RT_PRIO_USER of include/uapi/linux/ipv6_route.h. */
export function usualMetric(prefix: Prefix): number {
  return familyOf(prefix) === 4 ? 0 : 1024;
}
