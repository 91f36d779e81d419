import { CpnError } from '../../core/errors/index.ts';
import { initialLanRoutes, type LanRoutes, trackLanRoutes } from '../../core/health/lan-routes.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import { behindRoutes, findMapConflicts } from '../../core/map/prefix-maps.ts';
import type { Prefix } from '../../core/net/cidr.ts';
import { assignedRoutes } from '../../core/routing/topology/route-owner.ts';
import { leavesRelay, leavesRoute } from '../../core/routing/topology/withdrawal.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Notes } from '../../store/store.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import { locateApi } from '../reconcile/names/resolve-names.ts';
import type { Tools } from '../tools.ts';
import { findDrops } from './foreign-drops.ts';
import { findLan } from './lan.ts';

/** Further inputs for the verdict on paths to LANs. */
export interface LanRouteContext {
  /** The routes whose packets another program drops, each with the reason. */
  readonly dropped: ReadonlyMap<Prefix, string>;
  /**
   * Seconds for which a path must be back before its route is served again. `since` has the times
   * at which such paths came back.
   */
  readonly settling: number;
  readonly since: ReadonlyMap<string, number>;
}

/**
 * Determines and records which routes of a connector lost their path to the LAN. The range of the
 * network is among them if another program drops what this host relays, and another connector
 * relays.
 */
export async function updateLanRoutes(
  tools: Pick<Tools, 'host' | 'store' | 'monotonic'>,
  { state, actual }: Evaluation,
  context: LanRouteContext,
) {
  const { map } = state.membership;
  const { maps } = state.options;
  const self = findOwnPeer(map, state);
  const routes = self ? assignedRoutes(map, self) : [];
  const notes = await tools.store.readNotes(state.interface);
  const before = notes.ways ?? initialLanRoutes(withdrawnBefore(state, self?.withdrawn ?? [], notes));
  // A platform that does not report its routes forwards nothing.
  if (self?.type !== 'connector' || actual.underlay.reached === undefined)
    return { before, lanRoutes: before, since: context.since, routes };
  const dropped = [...findMapConflicts(map, routes, maps), ...context.dropped];
  const tracked = trackLanRoutes(before, behindRoutes(routes, maps), {
    ...context,
    dropped: new Map([...dropped].filter(([route]) => leavesRoute(map, self, route))),
    underlay: actual.underlay,
    isOnline: routes.length > 0 && (await isOnline(tools, state, actual.underlay)),
    withdrawn: self.withdrawn,
    now: tools.monotonic(),
  });
  const { since } = tracked;
  // Relaying returns at once, and so before the routes. If both return together, the control plane
  // takes it for the end of a drain, and gives the connector its former place back.
  const closed = context.dropped.get(map.cidr);
  const relaying = closed !== undefined && leavesRelay(map, self) ? closeRelaying(map.cidr, closed) : {};
  const lanRoutes = { ...tracked.lanRoutes, ...relaying };
  const isNew = JSON.stringify(lanRoutes) !== JSON.stringify(notes.ways ?? {});
  if (isNew) await tools.store.amendNotes(state.interface, { ways: lanRoutes });
  return { before, lanRoutes, since, routes };
}

function closeRelaying(range: Prefix, gone: string): LanRoutes {
  return { [range]: { isOwn: false, links: [], gone } };
}

/** Records which routes have no path to their LAN. Only the daemon waits for a path to settle. */
export async function checkLanRoutes(
  tools: Pick<Tools, 'host' | 'store' | 'monotonic'>,
  evaluation: Evaluation,
): Promise<void> {
  const dropped = await findDrops(tools, evaluation).then(
    ({ routes }) => routes,
    (error: unknown) => {
      // If packet rules cannot be read, nothing is withdrawn.
      if (error instanceof CpnError) return new Map();
      throw error;
    },
  );
  await updateLanRoutes(tools, evaluation, { settling: 0, since: new Map(), dropped });
}

/**
 * Returns the routes that were withdrawn before a reboot because their path was lost. Notes about
 * lost paths do not survive a reboot, so these are the routes without another reason.
 */
function withdrawnBefore(state: Joined, withdrawn: readonly Prefix[], { dead, unloaded }: Notes): readonly Prefix[] {
  // If the network's range is withdrawn too, the host was drained or had no packet rules.
  const isWhole = state.drained || unloaded !== null || withdrawn.includes(state.membership.map.cidr);
  if (isWhole || findLan(state) !== null) return [];
  return withdrawn.filter((route) => !dead.includes(route));
}

async function isOnline({ host }: Pick<Tools, 'host'>, state: Joined, underlay: Evaluation['actual']['underlay']) {
  const { uplinks, links } = underlay;
  const isDown = (uplink: string) => links.some(({ name, isDown }) => name === uplink && isDown);
  if (uplinks.length > 0 && uplinks.every(isDown)) return false;
  const sources = await Promise.all(locateApi(state).map((address) => host.sourceAddress(address)));
  return sources.length === 0 || sources.some((source) => source !== null);
}

export function findUnreachableLans(lanRoutes: LanRoutes | null): { readonly route: string; readonly why: string }[] {
  return Object.entries(lanRoutes ?? {}).flatMap(([route, { gone }]) => (gone === null ? [] : [{ route, why: gone }]));
}
