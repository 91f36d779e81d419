import type { Surroundings } from '../actual.ts';
import { covers, lengthOf, type Prefix } from '../cidr.ts';
import { isDefaultRoute } from '../full-tunnel.ts';

/**
 * The interfaces by which this host reaches a route: those of its most specific route there, and those of routes to parts of it;
 * where it has neither, those of its default routes. Empty where it has none of all.
 */
export function linksToward(route: Prefix, { connected, routed, uplinks }: Surroundings): readonly string[] {
  const known = [...connected, ...routed];
  const around = known.filter(({ prefix }) => covers(prefix, route));
  const longest = Math.max(...around.map(({ prefix }) => lengthOf(prefix)));
  const nearest = around.filter(({ prefix }) => lengthOf(prefix) === longest);
  const within = isDefaultRoute(route) ? [] : known.filter(({ prefix }) => covers(route, prefix));
  const links = [...nearest, ...within].map(({ link }) => link);
  return [...new Set(links.length > 0 ? links : uplinks)];
}
