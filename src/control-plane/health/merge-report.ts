import {
  type MappedRoute,
  mostPaths,
  mostRoutes,
  type PeerPath,
  type ProbeResult,
  type Report,
  type RoutePath,
} from '../../contract/health.ts';
import { lengthOf, maskPrefix } from '../../core/net/cidr.ts';

export interface MergedReport {
  readonly paths: readonly PeerPath[];
  readonly routes: readonly RoutePath[];
  readonly map: readonly MappedRoute[];
  readonly drift: number | null;
  readonly pin_mismatches: readonly number[];
  readonly problem: string | null;
  /** The latest result of each peer that it was requested to probe. */
  readonly probes: readonly StoredProbe[];
  /** The routes without a connector that answers, since when. Left out if that time is unknown. */
  readonly unserved: readonly UnservedRoute[];
}

interface UnservedRoute {
  readonly route: string;
  /** ISO 8601. */
  readonly since: string;
}

interface StoredProbe extends ProbeResult {
  /** When it was reported, ISO 8601. */
  readonly at: string;
}

const nothing: MergedReport = {
  ...{ paths: [], routes: [], map: [], unserved: [], probes: [] },
  ...{ drift: null, pin_mismatches: [], problem: null },
};

/** Parses stored reports. Reports from earlier versions lack probes, unserved routes and maps. */
export function readReport(stored: string | null): MergedReport {
  return stored === null ? nothing : { ...nothing, ...(JSON.parse(stored) as Partial<MergedReport>) };
}

export interface ReportScope {
  readonly sender: number;
  readonly peers: ReadonlySet<number>;
  readonly prefixes: ReadonlySet<string>;
  /** The time of the report, ISO 8601. */
  readonly at: string;
}

/** The maximum number of peers with kept probes. */
const mostProbes = 64;

/**
 * Merges a report into earlier ones, without foreign subjects. The latest stay within the limits.
 */
export function mergeReport(before: MergedReport, report: Report, scope: ReportScope): MergedReport {
  const base = report.complete ? nothing : before;
  const isPeer = (id: number) => id !== scope.sender && scope.peers.has(id);
  const paths = (report.paths ?? []).filter(({ peer }) => isPeer(peer)).map((path) => tidyPath(path, isPeer));
  const isConnector = (id: number | null) => id === null || scope.peers.has(id);
  const routes = (report.routes ?? []).filter(
    ({ route, connector }) => scope.prefixes.has(route) && isConnector(connector),
  );
  const probes = (report.probes ?? []).filter(({ peer }) => isPeer(peer));
  const merged = replaceBy(({ peer }) => peer, base.paths, paths);
  // A host detects a dead peer without a probe only if it sends packets to it.
  const probed = probes.map(({ peer, answered }): PeerPath => {
    const known = merged.find((path) => path.peer === peer);
    return { ...(known?.via === undefined ? known : null), peer, path: answered ? 'direct' : 'down' };
  });
  const mergedRoutes = replaceBy(({ route }) => route, base.routes, routes).slice(-mostRoutes);
  return {
    paths: replaceBy(({ peer }) => peer, merged, probed).slice(-mostPaths),
    probes: replaceBy(
      ({ peer }) => peer,
      before.probes,
      probes.map((probe) => ({ ...probe, at: scope.at })),
    ).slice(-mostProbes),
    routes: mergedRoutes,
    map: report.map ? tidyMaps(report.map, scope) : base.map,
    unserved: findUnserved(before, mergedRoutes, scope.at),
    drift: report.drift ?? base.drift,
    pin_mismatches: report.pin_mismatches ? [...new Set(report.pin_mismatches.filter(isPeer))] : base.pin_mismatches,
    problem: report.problem === undefined ? base.problem : report.problem,
  };
}

/** Leaves out maps of prefixes that are no routes, and those that are not 1:1. */
function tidyMaps(maps: readonly MappedRoute[], { prefixes }: ReportScope): MappedRoute[] {
  return maps.flatMap(({ route, local }) => {
    const prefix = maskPrefix(local);
    return prefixes.has(route) && lengthOf(prefix) === lengthOf(maskPrefix(route)) ? [{ route, local: prefix }] : [];
  });
}

/** A route that had no connector keeps its instant. Reports of earlier versions have none. */
function findUnserved(before: MergedReport, routes: readonly RoutePath[], at: string): UnservedRoute[] {
  const isWithout = ({ connector }: RoutePath) => connector === null;
  const earlier = new Set(before.routes.filter(isWithout).map(({ route }) => route));
  const known = before.unserved.filter(({ route }) => earlier.has(route));
  return routes
    .filter(isWithout)
    .flatMap(
      ({ route }) => known.find((each) => each.route === route) ?? (earlier.has(route) ? [] : { route, since: at }),
    );
}

function tidyPath({ via, rtt_ms, ...path }: PeerPath, isPeer: (id: number) => boolean): PeerPath {
  return {
    ...path,
    ...(via !== undefined && isPeer(via) && { via }),
    ...(rtt_ms !== undefined && { rtt_ms: Math.round(rtt_ms * 10) / 10 }),
  };
}

function replaceBy<Entry>(key: (entry: Entry) => unknown, before: readonly Entry[], newer: readonly Entry[]): Entry[] {
  const latest = new Map(newer.map((entry) => [key(entry), entry]));
  return [...before.filter((entry) => !latest.has(key(entry))), ...latest.values()];
}
