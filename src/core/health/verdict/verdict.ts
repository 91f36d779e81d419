import type { PathState } from '../../../contract/health.ts';

/** Seconds until a host is silent: a long poll takes up to 60 s, and a request may be retried. */
const silentAfter = 90;
/** Seconds for which a probe result counts. Hosts probe a lost peer three times in that time. */
const probeLasts = 60;
/** Seconds until a probe counts as unanswered. A host that reports earlier has not probed. */
const shortestProbe = 3;

/** The observations of a peer. Times are in seconds. */
export interface ObservedPeer {
  readonly id: number;
  /** Its last request to the control plane; null without any. */
  readonly lastSeen: number | null;
  /** The state in the last event; null before the first event. */
  readonly announced: 'online' | 'offline' | null;
  /** How it reaches other peers, from its own report. */
  readonly paths: ReadonlyMap<number, PathState>;
  /** When its connection to the control plane was lost; null if it made a request since. */
  readonly lostAt?: number | null;
  /** Its results of probing other peers, with the time of the report. */
  readonly probes?: ReadonlyMap<number, { readonly answered: boolean; readonly at: number }>;
}

export interface PeerVerdict {
  readonly state: 'online' | 'offline' | 'unknown';
  /** True for a host that is in contact with the control plane. */
  readonly isHeard: boolean;
  /** True if its connection to the control plane was lost, and it made no request since. */
  readonly isLost: boolean;
  /** The number of hosts that the peer answers. */
  readonly reachableBy: number;
  /** The number of hosts that can observe the peer. */
  readonly witnesses: number;
  readonly why: string;
}

/**
 * Judges the peers of one network. A peer is offline if it is silent to the control plane and to
 * each witness. Only a host in contact with the control plane is a witness, because other hosts
 * receive no changes. A peer whose connection is lost is silent immediately if no probing host got
 * an answer, and at least one probed it. Times are in seconds.
 *
 * @param listeningSince when the control plane began to accept requests; all were silent before
 */
export function judgePeers(
  peers: readonly ObservedPeer[],
  now: number,
  listeningSince: number,
): ReadonlyMap<number, PeerVerdict> {
  const isJustStarted = now - listeningSince <= silentAfter;
  const isRecent = ({ lastSeen, announced }: ObservedPeer) =>
    (lastSeen !== null && now - lastSeen <= silentAfter) || (isJustStarted && announced === 'online');
  const recent = peers.filter(isRecent);
  const probed = countProbes(peers, recent.filter(isConnected), now);
  const isDead = ({ id }: ObservedPeer) => probed.get(id)?.reachableBy === 0;
  const heard = new Set(recent.filter((peer) => !isDead(peer)).map(({ id }) => id));
  const opinions = new Map([...countOpinions(recent.filter((peer) => !isDead(peer))), ...probed]);
  const fellSilent = peers.filter(({ id, announced }) => announced === 'online' && !heard.has(id));
  // The control plane cannot distinguish many dead hosts from its own dead uplink.
  const isDeaf = heard.size === 0 && fellSilent.length > 1;
  return new Map(
    peers.map((peer) => {
      const { reachableBy = 0, witnesses = 0 } = opinions.get(peer.id) ?? {};
      const of = witnesses === 0 ? null : countHosts(reachableBy, witnesses, ['reaches', 'reach']);
      const others = of ?? 'no other host reports on it';
      const judge = (): Pick<PeerVerdict, 'state' | 'why'> => {
        const { lastSeen } = peer;
        if (heard.has(peer.id)) {
          if (!isConnected(peer)) return { state: 'online', why: `its connection was lost, but ${others}` };
          return { state: 'online', why: ['it reaches the control plane', ...(of === null ? [] : [of])].join('; ') };
        }
        // The peer may have reached the control plane: a join is not recorded as its request, and
        // old requests are deleted.
        const silence =
          lastSeen === null ? 'no request on record since it joined' : `not seen for ${formatSilence(now - lastSeen)}`;
        if (reachableBy > 0) return { state: 'online', why: `${silence}, but ${others}` };
        if (isDeaf) return { state: 'unknown', why: `${silence}, like every other host of the network` };
        if (lastSeen === null && peer.announced === null) return { state: 'unknown', why: `${silence}; ${others}` };
        return { state: 'offline', why: `${silence}; ${others}` };
      };
      return [peer.id, { ...judge(), isHeard: heard.has(peer.id), isLost: !isConnected(peer), reachableBy, witnesses }];
    }),
  );
}

function isConnected({ lostAt = null }: ObservedPeer): boolean {
  return lostAt === null;
}

/** Counts probes since a peer's connection was lost. Peers that no host probed are absent. */
function countProbes(
  peers: readonly ObservedPeer[],
  witnesses: readonly ObservedPeer[],
  now: number,
): ReadonlyMap<number, Opinions> {
  return new Map(
    peers.flatMap(({ id, lostAt = null }) => {
      if (lostAt === null) return [];
      const counted = witnesses.flatMap(({ probes }) => {
        const probe = probes?.get(id);
        const isCurrent = probe !== undefined && now - probe.at <= probeLasts;
        return isCurrent && probe.at >= lostAt + (probe.answered ? 0 : shortestProbe) ? [probe.answered] : [];
      });
      if (counted.length === 0) return [];
      return [[id, { reachableBy: counted.filter(Boolean).length, witnesses: counted.length }] as const];
    }),
  );
}

interface Opinions {
  readonly reachableBy: number;
  readonly witnesses: number;
}

function countOpinions(witnesses: readonly ObservedPeer[]): ReadonlyMap<number, Opinions> {
  const counts = new Map<number, { reachableBy: number; witnesses: number }>();
  for (const witness of witnesses) {
    for (const [peer, path] of witness.paths) {
      // A relayed path and an old session are no observation of the peer itself.
      if (peer === witness.id || path === 'relayed' || path === 'stale') continue;
      const count = counts.get(peer) ?? { reachableBy: 0, witnesses: 0 };
      count.witnesses += 1;
      if (path === 'direct') count.reachableBy += 1;
      counts.set(peer, count);
    }
  }
  return counts;
}

function countHosts(some: number, all: number, [one, many]: readonly [string, string]): string {
  return `${some} of ${all} ${all === 1 ? 'host' : 'hosts'} ${some === 1 ? one : many} it`;
}

function formatSilence(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

/** A connector to which a route is assigned. Connectors are in the order of rank. */
export interface ObservedConnector {
  readonly id: number;
  readonly state: PeerVerdict['state'];
  /** True if it has taken the route out of service. */
  readonly isWithdrawn: boolean;
  /** True if it reports that the LAN behind the route does not answer. */
  readonly isLanDown: boolean;
  /** False if no request of it is on record, and no host reports that it answers. */
  readonly hasAnswered: boolean;
}

/** How a host reaches a route. */
export interface RouteVote {
  /** The connector that it uses; null if no connector answers it. */
  readonly connector: number | null;
  /** When it lost the last connector that answered, in seconds; null if unknown. */
  readonly lostAt: number | null;
}

/** The inputs of a verdict on a route other than the reports. */
export interface RouteContext {
  /** Seconds. */
  readonly now: number;
  /** True if the last events state that the route is up. A different verdict is then an event. */
  readonly isStatedUp: boolean;
  /**
   * True if the only host that uses the route never reached any connector of it, or any other host.
   * That host may be cut off itself, so the route is not dead, but unconfirmed.
   */
  readonly isUnreached?: boolean;
  /** True if hosts spread over equal connectors. The first one in use then counts as active. */
  readonly isSpread?: boolean;
}

/** Seconds until a route without a connector is dead: hosts may miss answers, or report late. */
const unservedFor = 2;

export interface RouteShare {
  readonly connector: number;
  readonly hosts: number;
}

export interface RouteVerdict {
  readonly state: 'up' | 'dead' | 'unknown';
  readonly connector: number | null;
  /** The connectors that would take over, in order. */
  readonly standby: readonly number[];
  /** The connectors that should serve it, and have never answered. */
  readonly neverAnswered: readonly number[];
  readonly why: string;
  /** How many hosts use each connector, in order of rank, if hosts spread. */
  readonly shares?: readonly RouteShare[];
  /** Seconds after which the route is dead if no host reports otherwise. */
  readonly deadIn?: number;
}

/**
 * A route is dead if all its connectors or their LAN are dead, or if for two seconds no host that
 * uses it found a connector that answers. Only hosts in contact with the control plane have votes.
 */
export function judgeRoute(
  connectors: readonly ObservedConnector[],
  votes: readonly RouteVote[],
  { now, isStatedUp, isUnreached = false, isSpread = false }: RouteContext,
): RouteVerdict {
  const neverAnswered = connectors.filter(({ hasAnswered }) => !hasAnswered).map(({ id }) => id);
  const dead = (why: string): RouteVerdict => ({ state: 'dead', connector: null, standby: [], neverAnswered, why });
  if (connectors.length === 0) return dead('no connector serves it');
  const inService = connectors.filter(({ isWithdrawn }) => !isWithdrawn);
  if (inService.length === 0) return dead('each of its connectors has taken it out of service');
  const withLan = inService.filter(({ isLanDown }) => !isLanDown);
  if (withLan.length === 0) return dead('its LAN does not answer at any of its connectors');
  const alive = withLan.filter(({ state }) => state !== 'offline');
  if (alive.length === 0) return dead('each of its connectors is offline');
  if (votes.length > 0 && votes.every(({ connector }) => connector === null)) {
    const why = 'no host finds a connector of it that answers';
    const deadIn = isStatedUp ? findRest(votes, now) : 0;
    if (deadIn <= 0) return dead(why);
    return { ...dead(`${why}, for less than ${unservedFor} s`), state: 'unknown', deadIn };
  }
  const counts = new Map(alive.map(({ id }) => [id, 0]));
  for (const { connector: id } of votes) if (id !== null && counts.has(id)) counts.set(id, (counts.get(id) ?? 0) + 1);
  // Sorting is stable, so equal counts keep the order of rank.
  const [best] = isSpread
    ? [...counts].filter(([, hosts]) => hosts > 0)
    : [...counts].toSorted(([, one], [, other]) => other - one);
  const [used, count] = best ?? [null, 0];
  const connector = count > 0 ? used : null;
  const standby = alive.filter(({ id, hasAnswered }) => hasAnswered && id !== connector).map(({ id }) => id);
  if (connector !== null) {
    const why = countHosts(count, votes.length, ['uses', 'use']);
    const shares = [...counts].map(([id, hosts]) => ({ connector: id, hosts }));
    return { state: 'up', connector, standby, neverAnswered, why, ...(isSpread && { shares }) };
  }
  if (isUnreached) {
    const why = 'the only host that uses it has never reached a connector of it';
    return { state: 'unknown', connector: null, standby, neverAnswered, why };
  }
  const first = alive.find(({ state }) => state === 'online')?.id ?? null;
  const rest = standby.filter((id) => id !== first);
  return {
    state: first === null ? 'unknown' : 'up',
    connector: first,
    standby: rest,
    neverAnswered,
    why: 'no host reports that it uses it',
  };
}

/** Seconds until `unservedFor` is over. Future instants came from a clock that was set back. */
function findRest(votes: readonly RouteVote[], now: number): number {
  const lastLoss = Math.max(...votes.map(({ lostAt }) => (lostAt === null || lostAt > now ? -Infinity : lostAt)));
  return lastLoss + unservedFor - now;
}
