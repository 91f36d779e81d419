import { reachWhole } from '../forward/links-toward.ts';
import type { Underlay } from '../host-state/actual.ts';
import type { PrefixMap } from '../map/prefix-maps.ts';
import { covers, isDefaultRoute, type Prefix } from '../net/cidr.ts';

/** How a connector reaches, or reached, the LAN behind a route that it serves. */
export interface LanRoute {
  /** True if routes other than the default route lead to the whole LAN ({@link reachWhole}). */
  readonly isOwn: boolean;
  /** The interfaces of these routes, including routes to parts of the LAN. */
  readonly links: readonly string[];
  /** Why the path is gone; null while it exists. */
  readonly gone: string | null;
}

/** The paths by route. Routes that never had a path are absent. */
export type LanRoutes = Readonly<Record<string, LanRoute>>;

/** The inputs of a verdict on paths. Times are in seconds of a monotonic clock. */
export interface LanObservation {
  readonly underlay: Underlay;
  /** Routes that another program closes here and another connector serves, with the reason. */
  readonly dropped: ReadonlyMap<Prefix, string>;
  /** False while this host does not reach the control plane: its peers detect that themselves. */
  readonly isOnline: boolean;
  /** The routes that the network considers out of service here. */
  readonly withdrawn: readonly Prefix[];
  /** When each path was first observed again. */
  readonly since: ReadonlyMap<string, number>;
  readonly now: number;
  /** Seconds for which a path must be present again before its route is served. */
  readonly settling: number;
}

/**
 * Adds an observation, if the platform reports its routes:
 * - A path is gone if the host has none, or needs its default route after a more specific one.
 * - It is gone if the kernel does not forward the network's packets to it, or another program drops
 *   them, even if this host itself reaches it.
 * - It is back after `settling` seconds, or immediately if its loss was not announced yet.
 *
 * @returns the paths, and since when each path that is still settling has been present
 */
export function trackLanRoutes(
  before: LanRoutes,
  served: readonly PrefixMap[],
  judging: LanObservation,
): { readonly lanRoutes: LanRoutes; readonly since: ReadonlyMap<string, number> } {
  if (judging.underlay.reached === undefined) return { lanRoutes: before, since: judging.since };
  const lanRoutes: Record<string, LanRoute> = {};
  const since = new Map<string, number>();
  for (const { route, local } of served) {
    const known = before[route];
    const dropped = judging.dropped.get(route) ?? null;
    const lanRoute = dropped === null ? findLanRoute(local, judging.underlay) : null;
    const isThere = lanRoute !== null && (lanRoute.isOwn || known?.isOwn !== true || isDefaultRoute(route));
    const refused = judging.underlay.forwarded?.[local]?.why ?? dropped;
    if (!isThere && refused !== null && judging.isOnline) {
      lanRoutes[route] = loseForwarding(known, refused, judging.underlay);
      continue;
    }
    if (!isThere) {
      if (known)
        lanRoutes[route] = judging.isOnline && known.gone === null ? lose(known, lanRoute, judging.underlay) : known;
      continue;
    }
    const at = judging.since.get(route) ?? judging.now;
    const isSettling = known?.gone != null && judging.withdrawn.includes(route) && judging.now - at < judging.settling;
    if (isSettling) since.set(route, at);
    lanRoutes[route] = { ...lanRoute, gone: isSettling ? known.gone : null };
  }
  return { lanRoutes, since };
}

/** At first, withdrawn routes count as gone. They return with a path other than a default route. */
export function initialLanRoutes(withdrawn: readonly Prefix[]): LanRoutes {
  const gone = 'it was out of service when the daemon started';
  return Object.fromEntries(withdrawn.map((route) => [route, { isOwn: true, links: [], gone }]));
}

export function findGone(lanRoutes: LanRoutes, routes: readonly Prefix[]): readonly Prefix[] {
  return routes.filter((route) => lanRoutes[route]?.gone != null);
}

/** Lets the routes whose path is gone return with any path, even by a default route only. */
export function acceptDefaultRoute(lanRoutes: LanRoutes): LanRoutes {
  return Object.fromEntries(
    Object.entries(lanRoutes).map(([route, lanRoute]) => [
      route,
      lanRoute.gone === null ? lanRoute : { ...lanRoute, isOwn: false },
    ]),
  );
}

type FoundRoute = Omit<LanRoute, 'gone'>;

/** Finds the path over interfaces that are up, or null. */
function findLanRoute(route: Prefix, underlay: Underlay): FoundRoute | null {
  const { reached = [], uplinks, forwarded = {} } = underlay;
  const kernels = forwarded[route];
  if (kernels && kernels.why !== null) return null;
  const down = new Set(underlay.links.filter(({ isDown }) => isDown).map(({ name }) => name));
  const live = isDefaultRoute(route)
    ? []
    : reached.filter(({ prefix, link }) => !down.has(link) && (covers(prefix, route) || covers(route, prefix)));
  const links = [...new Set(live.map(({ link }) => link))];
  if (reachWhole(route, live, underlay)) return { isOwn: true, links };
  // A policy rule for the network's packets can use a table other than the main table.
  const others = kernels?.links.filter((link) => !down.has(link) && !uplinks.includes(link)) ?? [];
  if (others.length > 0) return { isOwn: !isDefaultRoute(route), links: [...new Set([...links, ...others])] };
  return links.length > 0 || uplinks.some((link) => !down.has(link)) ? { isOwn: false, links } : null;
}

/** If an interface is down, that is the cause; the kernel's refusal only follows from it. */
function loseForwarding(known: LanRoute | undefined, refused: string, underlay: Underlay): LanRoute {
  if (known === undefined) return { isOwn: false, links: [], gone: refused };
  const live = new Set(underlay.links.filter(({ isDown }) => !isDown).map(({ name }) => name));
  const dead = known.links.filter((link) => !live.has(link));
  return { ...known, gone: dead.length === 0 ? refused : lose({ ...known, links: dead }, null, underlay).gone };
}

/** @param left the remaining path, which is not sufficient */
function lose(lanRoute: LanRoute, left: FoundRoute | null, { links }: Underlay): LanRoute {
  const link = lanRoute.links.find((each) => left?.links.includes(each) !== true) ?? lanRoute.links[0];
  if (link === undefined) return { ...lanRoute, gone: 'this host has no route there' };
  const present = links.find(({ name }) => name === link);
  if (present === undefined) return { ...lanRoute, gone: `there is no interface ${link} any more` };
  if (present.isDown) return { ...lanRoute, gone: `${link} is down, or has no carrier` };
  return { ...lanRoute, gone: `the route there by ${link} is gone` };
}
