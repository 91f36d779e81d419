import type { Underlay } from '../host-state/actual.ts';
import { covers, familyOf, isDefaultRoute, lengthOf, type Prefix, rangeOf } from '../net/cidr.ts';
import { isPlainLinkName } from '../net/link-name.ts';

/**
 * Finds the interfaces by which this host reaches a route: those of its most specific route there
 * and of routes to its parts. If these do not reach the whole, also those of default routes.
 */
export function linkFinder(underlay: Underlay): (route: Prefix) => readonly string[] {
  const { connected, routed, uplinks, forwarded = {} } = underlay;
  const known = [...connected, ...routed].map((linkRoute) => ({
    linkRoute,
    family: familyOf(linkRoute.prefix),
    length: lengthOf(linkRoute.prefix),
    ...rangeOf(linkRoute.prefix),
  }));
  return (route) => {
    const { first, last } = rangeOf(route);
    const family = familyOf(route);
    const related = known.filter((each) => each.family === family);
    const covering = related.filter((each) => each.first <= first && last <= each.last);
    const longest = covering.reduce((length, each) => Math.max(length, each.length), 0);
    const nearest = covering.filter(({ length }) => length === longest);
    const within = isDefaultRoute(route) ? [] : related.filter((each) => first <= each.first && each.last <= last);
    const linkRoutes = [...nearest, ...within].map(({ linkRoute }) => linkRoute);
    // Policy rules may lead packets of the network by other routes than the host's own packets.
    const links = [...linkRoutes.map(({ link }) => link), ...(forwarded[route]?.links ?? [])];
    return [...new Set(reachWhole(route, linkRoutes, underlay) ? links : [...links, ...uplinks])];
  };
}

/**
 * True if these routes reach a whole prefix without a default route: a route covers it, parts make
 * it up, or a part is a LAN of a network card that has no default route. Such a LAN stands for the
 * whole. Parts on container bridges or VPNs are temporary, so the rest of the prefix is elsewhere.
 */
export function reachWhole(
  route: Prefix,
  known: Underlay['routed'],
  { links, uplinks }: Pick<Underlay, 'links' | 'uplinks'>,
): boolean {
  const cards = new Set(links.filter(({ kind }) => kind === 'card').map(({ name }) => name));
  const isLan = (link: string) => cards.has(link) && !uplinks.includes(link);
  const parts = known.filter(({ prefix }) => covers(route, prefix));
  return (
    known.some(({ prefix }) => covers(prefix, route)) ||
    parts.some(({ link }) => isLan(link)) ||
    makeUp(
      route,
      parts.map(({ prefix }) => prefix),
    )
  );
}

/** Checks all parts in a single pass: a host may have thousands of routes. */
function makeUp(whole: Prefix, parts: readonly Prefix[]): boolean {
  const { first, last } = rangeOf(whole);
  let next = first;
  for (const part of parts.map(rangeOf).toSorted((a, b) => (a.first < b.first ? -1 : 1))) {
    if (part.first > next) return false;
    if (part.last >= next) next = part.last + 1n;
  }
  return next > last;
}

/** Interfaces by which connections of served prefixes arrive, and these prefixes. */
export interface Entrance {
  readonly by: readonly string[];
  readonly from: readonly Prefix[];
}

/** Groups prefixes by the interfaces that lead to them; leaves out prefixes without any. */
export function findEntrances(
  prefixes: readonly Prefix[],
  linksToward: (route: Prefix) => readonly string[],
): Entrance[] {
  const entrances = prefixes.map((prefix) => ({ prefix, by: linksToward(prefix).filter(isPlainLinkName).toSorted() }));
  const groups = Map.groupBy(
    entrances.filter(({ by }) => by.length > 0),
    ({ by }) => by.join(),
  );
  return [...groups.values()].map((group) => ({ by: group[0]?.by ?? [], from: group.map(({ prefix }) => prefix) }));
}
