import type { Actual, Surroundings } from './actual.ts';
import { covers, lengthOf, maskPrefix, type Prefix } from './cidr.ts';
import { isDefaultRoute, routingTableOf } from './full-tunnel.ts';
import { formatInterfaceAddress } from './model.ts';

/** A prefix that leads past the tunnel, and where to. */
export interface Detour {
  readonly prefix: Prefix;
  readonly link: string;
}

/**
 * The widest part of `prefix` for which this host has a more specific route past the tunnel, which the kernel prefers; null
 * when all of it goes one way. A full tunnel is meant to take only what has no other route, and has no detours.
 */
export function findDetour(prefix: Prefix, surroundings: Surroundings): Detour | null {
  if (isDefaultRoute(prefix)) return null;
  const parts = elsewhere(surroundings).filter(
    (other) => lengthOf(other.prefix) > lengthOf(prefix) && covers(prefix, other.prefix),
  );
  return parts.toSorted((a, b) => lengthOf(a.prefix) - lengthOf(b.prefix))[0] ?? null;
}

/** A detour as a part of the prefix that was just named. */
export function describeDetour({ prefix, link }: Detour): string {
  return `${prefix} of it leads to ${link}`;
}

/** True when `prefix` has a route of its own into the interface, or lies in the range of the interface's address, which has one. */
export function leadsIn(prefix: Prefix, actual: Pick<Actual, 'routes' | 'onLink'>): boolean {
  return ownRoutes(actual).includes(prefix) || actual.onLink.some((range) => covers(range, prefix));
}

/** Says why not every packet to `prefix` is sent into the interface `link`; null when all are. */
export function explainDetour(prefix: Prefix, link: string, actual: Actual): string | null {
  const lengths = [...ownRoutes(actual), ...actual.onLink].filter((way) => covers(way, prefix)).map(lengthOf);
  if (lengths.length === 0) return `no route to ${prefix} leads into ${link}`;
  const past = elsewhere(actual.surroundings).find(
    (way) => covers(way.prefix, prefix) && lengthOf(way.prefix) > Math.max(...lengths),
  );
  if (past) return `${prefix} leads to ${past.link}, by the route to ${past.prefix}`;
  const detour = findDetour(prefix, actual.surroundings);
  return detour && `of ${prefix}, ${detour.prefix} leads to ${detour.link}`;
}

function elsewhere({ connected, routed }: Surroundings): readonly Detour[] {
  return [...routed, ...connected];
}

/**
 * What leads into our interface: its routes, and the range of its address. The latter also while the route to it is gone: that changes
 * nothing of what the host reaches through the tunnel.
 */
export function ownWays(actual: Pick<Actual, 'link' | 'routes'>): Prefix[] {
  const { link } = actual;
  const ranges = link?.up ? link.addresses.map((address) => maskPrefix(formatInterfaceAddress(address))) : [];
  return [...ownRoutes(actual), ...ranges];
}

/** The routes into our interface in tables that our rules lead to. */
function ownRoutes({ routes }: Pick<Actual, 'routes'>): Prefix[] {
  return routes.filter(({ prefix, table }) => table === routingTableOf(prefix)).map(({ prefix }) => prefix);
}
