import type {
  MappedRoute,
  PathState,
  PeerPath,
  RefusedConnection,
  Report,
  RoutePath,
} from '../../../contract/health.ts';
import type { PublicKey } from '../../crypto/keys.ts';
import type { ActualPeer } from '../../host-state/actual.ts';
import type { NetworkMap, Peer, PeerFailure, PeerId } from '../../map/model.ts';
import { familyOf } from '../../net/cidr.ts';
import type { RouteReport } from '../../routing/route-report.ts';
import { findRelays, isFresh } from '../peer-health.ts';
import { isInUse, isUnanswered, type PeerActivity } from './peer-activity.ts';

/** What a host observes of its network. */
export interface HostObservation {
  readonly map: NetworkMap;
  readonly self: { readonly id: PeerId; readonly keys: readonly PublicKey[] };
  /** The peers that receive packets directly, each with its allowed IPs. */
  readonly reached: readonly Pick<ActualPeer, 'publicKey' | 'allowedIps'>[];
  readonly routes: readonly RouteReport[];
  /** WireGuard's own table, and the activity derived from its counters. */
  readonly peers: readonly ActualPeer[];
  readonly activity: ReadonlyMap<PublicKey, PeerActivity>;
  /** Round-trip times of probes in milliseconds, as far as there are probes. */
  readonly rtts: ReadonlyMap<PublicKey, number>;
  readonly failed: readonly PeerFailure[];
  /** Peers whose key or address is not the pinned one. */
  readonly mismatches: readonly PeerId[];
  /** The routes served here whose LAN does not answer. */
  readonly dead: ReadonlySet<string>;
  /** True if probes show whether a LAN answers. */
  readonly areLansProbed: boolean;
  /** The number of changes that are left to a later pass. */
  readonly drift: number;
  readonly problem: string | null;
  /** Seconds since the epoch, the clock of WireGuard's handshakes. */
  readonly now: number;
  /** Seconds of the clock of `activity`. */
  readonly at: number;
}

/** A path with the time of its handshake, which stays the same while its age grows. */
export interface ObservedPath extends Omit<PeerPath, 'handshake_age'> {
  /** Seconds since the epoch. */
  readonly handshake?: number;
}

/** The complete report of a host. */
export interface HostReport {
  readonly paths: readonly ObservedPath[];
  readonly routes: readonly RoutePath[];
  readonly map: readonly MappedRoute[];
  readonly drift: number;
  readonly pinMismatches: readonly number[];
  readonly problem: string | null;
}

/** A part of a report. With `complete` it has all fields, and replaces the earlier reports. */
export interface ReportPart extends Partial<HostReport> {
  readonly complete?: true;
}

/** The contract's limits for a report. The constants of the schemas would be slow to load. */
const mostPaths = 500;
const mostRoutes = 51;
const longestProblem = 300;
/** WireGuard counts nothing for relayed peers: the host cannot determine which of them it uses. */
const mostRelayed = 32;

/** How other hosts reach this one: the reply to a report. */
export interface Reachability {
  /** The number of witnesses that the host answers. */
  readonly reachableBy: number;
  /** The number of hosts that can observe this one. */
  readonly witnesses: number;
}

/** The report of a host whose network is down. */
export const emptyReport: HostReport = { paths: [], routes: [], map: [], drift: 0, pinMismatches: [], problem: null };

/** Orders paths: connectors, peers that sent packets, other peers in use, relayed peers. */
export function composeReport(observation: HostObservation): HostReport {
  const { mismatches, drift, problem } = observation;
  const paths = findPaths(observation);
  return {
    paths,
    routes: findRoutes(observation, new Map(paths.map(({ peer, path }) => [peer, path]))),
    map: findMaps(observation),
    drift,
    pinMismatches: mismatches.filter(isNumber).slice(0, mostPaths),
    problem: problem === null ? null : shorten(problem),
  };
}

export function withProblem(report: HostReport, problem: string | null): HostReport {
  return { ...report, problem: problem === null ? null : shorten(problem) };
}

function shorten(problem: string): string {
  const characters = [...problem.replaceAll('\0', '')];
  return characters.length > longestProblem
    ? `${characters.slice(0, longestProblem - 3).join('')}...`
    : characters.join('');
}

/** Accepts the ids of cpn's control plane. Other services may have ids of another form. */
function isNumber(id: PeerId | undefined): id is number {
  return Number.isSafeInteger(id) && (id as number) > 0;
}

function findPaths(observation: HostObservation): ObservedPath[] {
  const { map, self, reached, peers } = observation;
  const ids = new Map(map.peers.map(({ publicKey, id }) => [publicKey, id]));
  const relays = findRelays(map, reached);
  const present = new Map(peers.map((peer) => [peer.publicKey, peer]));
  const silent = new Set(observation.failed.filter(({ back }) => !back).map(({ peer }) => peer));
  const found = map.peers.flatMap((peer): { rank: number; path: ObservedPath }[] => {
    const { id, publicKey } = peer;
    if (!isNumber(id) || id === self.id || self.keys.includes(publicKey)) return [];
    const relay = relays.get(publicKey);
    if (relay !== undefined) {
      const via = ids.get(relay);
      return isNumber(via) ? [{ rank: 3, path: { peer: id, path: 'relayed', via } }] : [];
    }
    const observed = present.get(publicKey);
    if (observed === undefined) return [];
    const path = findState(observation, observed, silent.has(id));
    if (path === null) return [];
    return [{ rank: rankOf(peer, observed), path: { peer: id, path, ...measure(observation, observed) } }];
  });
  const ranked = found.toSorted((one, other) => one.rank - other.rank || one.path.peer - other.path.peer);
  const most = Math.min(mostPaths, ranked.filter(({ rank }) => rank < 3).length + mostRelayed);
  return ranked.slice(0, most).map(({ path }) => path);
}

/** Ranks paths by properties that seldom change: a dropped entry costs a complete report. */
function rankOf({ type }: Peer, { rxBytes }: ActualPeer): number {
  if (type === 'connector') return 0;
  return rxBytes > 0 ? 1 : 2;
}

/** Null for a peer to which nothing was ever sent. */
function findState({ activity, now, at }: HostObservation, observed: ActualPeer, isFailed: boolean): PathState | null {
  const { publicKey, latestHandshake, txBytes } = observed;
  const active = activity.get(publicKey);
  if (latestHandshake === null) {
    if (txBytes === 0) return null;
    return active && !isInUse(active, at) ? 'stale' : 'never';
  }
  if (isFailed || (active && isUnanswered(active, at))) return 'down';
  return isFresh(latestHandshake, now) ? 'direct' : 'stale';
}

function measure({ activity, rtts }: HostObservation, { publicKey, latestHandshake }: ActualPeer) {
  const rates = activity.get(publicKey)?.rates;
  const rtt = rtts.get(publicKey);
  return {
    ...(latestHandshake !== null && { handshake: latestHandshake }),
    ...(rtt !== undefined && { rtt_ms: Math.min(60_000, Math.round(rtt * 10) / 10) }),
    ...(rates && { rx_rate: rates.rx, tx_rate: rates.tx }),
  };
}

/** Routes that this host does not accept are left out. */
function findRoutes(observation: HostObservation, paths: ReadonlyMap<PeerId, PathState>): RoutePath[] {
  const { map, self, dead, areLansProbed } = observation;
  const connectors = map.peers.filter(({ type }) => type === 'connector');
  const ids = new Map(connectors.map(({ name, id }) => [name, id]));
  const routes = observation.routes.flatMap(({ prefix, via, state }): RoutePath[] => {
    if (state === 'standby' || state === 'refused' || familyOf(prefix) !== 4) return [];
    const id = state === 'served' ? self.id : state === 'taken' && via !== null ? ids.get(via) : undefined;
    const path = id === undefined ? undefined : paths.get(id);
    const isUsable = isNumber(id) && path !== 'down' && path !== 'never';
    const isServed = state === 'served' || state === 'withdrawn';
    const lan = isServed && dead.has(prefix) ? 'down' : isServed && areLansProbed ? 'up' : null;
    return [{ route: prefix, connector: isUsable ? id : null, ...(lan && { lan }) }];
  });
  return routes.slice(0, mostRoutes);
}

function findMaps({ routes }: HostObservation): MappedRoute[] {
  const maps = routes.flatMap(({ prefix, local }) => (local === undefined ? [] : [{ route: prefix, local }]));
  return maps.slice(0, mostRoutes);
}

/** Converts a report to the contract's format. `now` is in seconds since the epoch. */
export function formatReport(
  {
    paths,
    pinMismatches,
    map,
    refused = [],
    ...part
  }: ReportPart & { readonly refused?: readonly RefusedConnection[] },
  now: number,
): Report {
  return {
    ...part,
    ...(map && (map.length > 0 || !part.complete) && { map: [...map] }),
    ...(paths && { paths: paths.map((path) => formatPath(path, now)) }),
    ...(part.routes && { routes: [...part.routes] }),
    ...(pinMismatches && { pin_mismatches: [...pinMismatches] }),
    ...(refused.length > 0 && {
      refused: refused.map(({ from, to, protocol, port }) => ({ from, to, protocol, port })),
    }),
  } as Report;
}

function formatPath({ handshake, ...path }: ObservedPath, now: number): PeerPath {
  return handshake === undefined ? path : { ...path, handshake_age: Math.max(0, now - handshake) };
}
