import type { Actual } from '../host-state/actual.ts';
import { hostPrefix } from '../net/cidr.ts';
import { outsideOf, thrownFrom } from '../routing/kept-outside.ts';
import type { RoutePlacement, TunnelRoutes } from '../routing/place-route.ts';
import { added, type Change, removed } from './change.ts';
import type { LinkCommand } from './step.ts';

type PlannedThrow = readonly [LinkCommand, Change];

/**
 * Plans the throw routes in the table of accepted routes, by which single addresses stay outside
 * the tunnel.
 */
export function planOutside(
  { routes, routeTable, keptOutside }: Pick<TunnelRoutes, 'routes' | 'routeTable' | 'keptOutside'>,
  { throwRoutes }: Pick<Actual, 'throwRoutes'>,
  place: RoutePlacement,
): PlannedThrow[] {
  if (routeTable === null) return [];
  const present = thrownFrom(routeTable, throwRoutes);
  const inTable = keptOutside.length === 0 ? [] : routes.filter((prefix) => place(prefix).table === routeTable);
  const wanted = outsideOf(inTable, keptOutside);
  const additions = wanted
    .filter(({ address }) => !present.includes(address))
    .map(({ address, what }): PlannedThrow => {
      const prefix = hostPrefix(address);
      const change = added('route', prefix, nameThrow(routeTable), `${what} stays outside the tunnel`);
      return [{ add: 'throw', prefix, table: routeTable }, change];
    });
  const isWanted = new Set(wanted.map(({ address }) => address));
  const surplus = present.filter((address) => !isWanted.has(address));
  return [...additions, ...surplus.map((address) => planRemoval(address, routeTable, 'no reason to stay outside'))];
}

/** Removes all throw routes from a table. */
export function planThrowRemovals(
  table: string,
  { throwRoutes }: Pick<Actual, 'throwRoutes'>,
  reason: string,
): PlannedThrow[] {
  return thrownFrom(table, throwRoutes).map((address) => planRemoval(address, table, reason));
}

function planRemoval(address: Parameters<typeof hostPrefix>[0], table: string, reason: string): PlannedThrow {
  const prefix = hostPrefix(address);
  return [{ remove: 'throw', prefix, table }, removed('route', prefix, nameThrow(table), reason)];
}

function nameThrow(table: string): string {
  return `throw table ${table}`;
}
