import type { Surroundings } from '../actual.ts';
import { covers, lengthOf, type Prefix } from '../cidr.ts';
import { isDefaultRoute } from '../full-tunnel.ts';
import { perObject } from '../per-object.ts';

/**
 * The interfaces by which this host reaches a route: those of its most specific route there, and those of routes to parts of it;
 * where it has neither, those of its default routes. Empty where it has none of all.
 */
export function linksToward(route: Prefix, surroundings: Surroundings): readonly string[] {
  const known = knownWays(surroundings);
  const links = known.get(route) ?? findLinks(route, surroundings);
  known.set(route, links);
  return links;
}

/** Several ask the same of the same surroundings, where a host may have thousands of routes. */
const knownWays = perObject((_: Surroundings) => new Map<Prefix, readonly string[]>());

function findLinks(route: Prefix, { connected, routed, uplinks }: Surroundings): readonly string[] {
  const known = [...connected, ...routed];
  const around = known.filter(({ prefix }) => covers(prefix, route));
  const longest = Math.max(...around.map(({ prefix }) => lengthOf(prefix)));
  const nearest = around.filter(({ prefix }) => lengthOf(prefix) === longest);
  const within = isDefaultRoute(route) ? [] : known.filter(({ prefix }) => covers(route, prefix));
  const links = [...nearest, ...within].map(({ link }) => link);
  return [...new Set(links.length > 0 ? links : uplinks)];
}
