import { reachWhole } from '../forward/links-toward.ts';
import type { Underlay } from '../host-state/actual.ts';
import { covers, isDefaultRoute, type Prefix } from '../net/cidr.ts';

/** How a connector reaches the LAN behind a route that it serves, or reached it before. */
export interface LanRoute {
  /** Whether it needed no default route: its routes there, connected subnets included, led to the whole ({@link reachWhole}). */
  readonly isOwn: boolean;
  /** The interfaces of these routes, to parts too. */
  readonly links: readonly string[];
  /** Why there is no way any more; null where there is one. */
  readonly gone: string | null;
}

/** The ways by the routes; a route to which there was never a way is not among them. */
export type LanRoutes = Readonly<Record<string, LanRoute>>;

/** How ways are judged. Times are in seconds of a clock that never jumps. */
export interface LanObservation {
  readonly underlay: Underlay;
  /** The routes whose packets another program drops here, all of them, while another connector serves them; each with the reason. */
  readonly dropped: ReadonlyMap<Prefix, string>;
  /** False while this host does not reach the control plane: its peers notice that by themselves. */
  readonly isOnline: boolean;
  /** The routes that the network holds for out of service here. */
  readonly withdrawn: readonly Prefix[];
  /** When each way was first seen again. */
  readonly since: ReadonlyMap<string, number>;
  readonly now: number;
  /** Seconds for which a way must be there again before its route is served. */
  readonly settling: number;
}

/**
 * Takes one more look into account, where the platform tells its routes. A way is gone as soon as the host has none, or needs its default route where it had a way of
 * its own. It is back once it was there for a while; a loss that was not announced yet ends at once. Where the kernel forwards
 * no packet of the network there, or another program drops them, it is gone, whatever this host itself reaches.
 *
 * @returns the ways, and since when those are there again that are still to settle
 */
export function trackLanRoutes(
  before: LanRoutes,
  routes: readonly Prefix[],
  judging: LanObservation,
): { readonly lanRoutes: LanRoutes; readonly since: ReadonlyMap<string, number> } {
  if (judging.underlay.reached === undefined) return { lanRoutes: before, since: judging.since };
  const lanRoutes: Record<string, LanRoute> = {};
  const since = new Map<string, number>();
  for (const route of routes) {
    const known = before[route];
    const dropped = judging.dropped.get(route) ?? null;
    const lanRoute = dropped === null ? findLanRoute(route, judging.underlay) : null;
    const isThere = lanRoute !== null && (lanRoute.isOwn || known?.isOwn !== true || isDefaultRoute(route));
    const refused = judging.underlay.forwarded?.[route]?.why ?? dropped;
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

/** What is known before the first look: what is out of service here was without its way, and comes back with one of its own. */
export function initialLanRoutes(withdrawn: readonly Prefix[]): LanRoutes {
  const gone = 'it was out of service when cpn began to look';
  return Object.fromEntries(withdrawn.map((route) => [route, { isOwn: true, links: [], gone }]));
}

/** The routes whose way is gone. */
export function findGone(lanRoutes: LanRoutes, routes: readonly Prefix[]): readonly Prefix[] {
  return routes.filter((route) => lanRoutes[route]?.gone != null);
}

/** Lets the routes whose way is gone be served as soon as there is any way, be it by a default route alone. */
export function acceptDefaultRoute(lanRoutes: LanRoutes): LanRoutes {
  return Object.fromEntries(
    Object.entries(lanRoutes).map(([route, lanRoute]) => [
      route,
      lanRoute.gone === null ? lanRoute : { ...lanRoute, isOwn: false },
    ]),
  );
}

type FoundRoute = Omit<LanRoute, 'gone'>;

/** The way by interfaces that are up; null where there is none. */
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
  // By a rule for packets of the network, and another table than the main one.
  const others = kernels?.links.filter((link) => !down.has(link) && !uplinks.includes(link)) ?? [];
  if (others.length > 0) return { isOwn: !isDefaultRoute(route), links: [...new Set([...links, ...others])] };
  return links.length > 0 || uplinks.some((link) => !down.has(link)) ? { isOwn: false, links } : null;
}

/** An interface that is down is the cause, and the kernel's refusal follows from it. */
function loseForwarding(known: LanRoute | undefined, refused: string, underlay: Underlay): LanRoute {
  if (known === undefined) return { isOwn: false, links: [], gone: refused };
  const live = new Set(underlay.links.filter(({ isDown }) => !isDown).map(({ name }) => name));
  const dead = known.links.filter((link) => !live.has(link));
  return { ...known, gone: dead.length === 0 ? refused : lose({ ...known, links: dead }, null, underlay).gone };
}

/** @param left the way that it has instead, which is not enough */
function lose(lanRoute: LanRoute, left: FoundRoute | null, { links }: Underlay): LanRoute {
  const link = lanRoute.links.find((each) => left?.links.includes(each) !== true) ?? lanRoute.links[0];
  if (link === undefined) return { ...lanRoute, gone: 'this host has no route there' };
  const present = links.find(({ name }) => name === link);
  if (present === undefined) return { ...lanRoute, gone: `there is no interface ${link} any more` };
  if (present.isDown) return { ...lanRoute, gone: `${link} is down, or has no carrier` };
  return { ...lanRoute, gone: `the route there by ${link} is gone` };
}
