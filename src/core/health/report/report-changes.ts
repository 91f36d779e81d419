import type { ProbeResult } from '../../../contract/health.ts';
import { sameData } from '../../util/same-data.ts';
import type { HostReport, ObservedPath, ReportPart } from './compose-report.ts';

/** The part of a report that was not reported yet. */
export interface ReportChanges {
  /** The entries with a changed state; null without any. */
  readonly transitions: ReportPart | null;
  /** The other paths, with figures that differ notably. */
  readonly figures: readonly ObservedPath[];
}

/**
 * Compares a report with earlier reports. A partial report cannot remove an entry, so the report is
 * complete if an entry is gone whose peer or route is still in the network (`isListed`).
 */
export function compareReports(
  before: HostReport,
  next: HostReport,
  isListed: (name: number | string) => boolean,
): ReportChanges {
  const known = new Map(before.paths.map((path) => [path.peer, path]));
  const routes = new Map(before.routes.map((route) => [route.route, route]));
  const left = new Set<number | string>([...known.keys(), ...routes.keys()]);
  for (const { peer } of next.paths) left.delete(peer);
  for (const { route } of next.routes) left.delete(route);
  if ([...left].some(isListed)) return { transitions: { ...next, complete: true }, figures: [] };
  const moved = next.paths.filter((path) => {
    const earlier = known.get(path.peer);
    return earlier === undefined || earlier.path !== path.path || earlier.via !== path.via;
  });
  const changed = next.routes.filter((route) => !sameData(routes.get(route.route), route));
  const isMoved = new Set(moved);
  const part: ReportPart = {
    ...(moved.length > 0 && { paths: moved }),
    ...(changed.length > 0 && { routes: changed }),
    ...(!sameData(before.map, next.map) && { map: next.map }),
    ...(before.drift !== next.drift && { drift: next.drift }),
    ...(!sameData(before.pinMismatches, next.pinMismatches) && { pinMismatches: next.pinMismatches }),
    ...(before.problem !== next.problem && { problem: next.problem }),
  };
  return {
    transitions: Object.keys(part).length === 0 ? null : part,
    figures: next.paths.filter((path) => !isMoved.has(path) && isNotable(known.get(path.peer), path)),
  };
}

/** Seconds by which a handshake's age may be reported too high: a session renews it every 120 s. */
const oldHandshake = 600;

function isNotable(before: ObservedPath | undefined, path: ObservedPath): boolean {
  const differs = (one: number | undefined, other: number | undefined, least: number, share: number) =>
    one === undefined || other === undefined
      ? one !== other
      : Math.abs(one - other) > Math.max(least, share * Math.min(one, other));
  return (
    (path.handshake ?? 0) - (before?.handshake ?? 0) > oldHandshake ||
    differs(before?.rtt_ms, path.rtt_ms, 10, 1) ||
    differs(before?.rx_rate ?? 0, path.rx_rate ?? 0, 5_000, 0.5) ||
    differs(before?.tx_rate ?? 0, path.tx_rate ?? 0, 5_000, 0.5)
  );
}

/** Returns the reported state once a part was sent. Entries that left the network are removed. */
export function mergeReport(before: HostReport, part: ReportPart, next: HostReport): HostReport {
  if (part.complete) return next;
  const { paths = [], routes = [], ...others } = part;
  const peers = new Set(next.paths.map(({ peer }) => peer));
  const prefixes = new Set(next.routes.map(({ route }) => route));
  return {
    ...before,
    ...others,
    paths: [...replaceBy(before.paths, paths, ({ peer }) => peer)].filter(({ peer }) => peers.has(peer)),
    routes: [...replaceBy(before.routes, routes, ({ route }) => route)].filter(({ route }) => prefixes.has(route)),
  };
}

/** The reported state after probe results: a service counts each as the path to that peer. */
export function mergeProbes(before: HostReport, probes: readonly ProbeResult[]): HostReport {
  const paths = probes.map(({ peer, answered }): ObservedPath => {
    const known = before.paths.find((path) => path.peer === peer);
    return { ...known, peer, path: answered ? 'direct' : 'down' };
  });
  return { ...before, paths: [...replaceBy(before.paths, paths, ({ peer }) => peer)] };
}

function replaceBy<Item>(items: readonly Item[], newer: readonly Item[], nameOf: (item: Item) => unknown) {
  return new Map([...items, ...newer].map((item) => [nameOf(item), item])).values();
}
