import type { FailedAttempt, PathEnd } from '../../contract/paths.ts';
import type { NatKind } from '../../core/paths/candidates.ts';

/**
 * Two peers that try for a direct path, or have one: gathering → trying → direct, and resting after
 * each of them. Instants are milliseconds since 1970. All functions are pure.
 */
export interface Pair {
  /** The lower id. */
  readonly a: number;
  readonly b: number;
  readonly state: 'gathering' | 'trying' | 'direct' | 'resting';
  readonly attempt: number;
  /** Attempts since the last reset of the backoff. */
  readonly tries: number;
  readonly startedAt: number;
  /** When the state began. */
  readonly at: number;
  /** When the next attempt may begin. */
  readonly nextAt: number;
  readonly data: PairData;
}

export interface PairData {
  /** The peer that began the attempt. */
  readonly by: number;
  /** How many connectors were to observe the peers. */
  readonly observers: number;
  /** When connectors were to observe the peers, after both stated their endpoints. */
  readonly askedAt?: number;
  /** True once the observation of one connector suffices. */
  readonly isLate?: boolean;
  /** A peer that stated no endpoints in time, or that takes no direct paths. */
  readonly silent?: number;
  /** The peers that have proven the path. */
  readonly proven: readonly number[];
  /** Which NAT each of both seems to be behind, in the order of their ids. */
  readonly nats?: readonly [NatKind, NatKind];
  /** What became of the endpoints that a peer tried, by its id. */
  readonly tried?: Readonly<Record<string, FailedAttempt['tried']>>;
  /** Why a host returned to the relay, or gave up the attempt. */
  readonly ended?: PathEnd;
  /** When new endpoints let the next attempt begin sooner. */
  readonly resets?: readonly number[];
  /** True if endpoints changed since the hosts got them. */
  readonly isOutdated?: boolean;
  /** True if the last event of the pair states a direct path. */
  readonly isAnnounced?: boolean;
}

/** After it, an attempt without an outcome is over: a host or a process stopped. */
export const attemptMs = 20_000;
/** A host with a direct path no longer reaches the peer through a relay. */
const switchedMs = 30_000;
/** A path that stood for this long was no false start. */
const steadyMs = 30_000;
/** The shortest time between two attempts of a pair. More resets of its backoff double it. */
const shortestMs = 5_000;
/** How long a reset counts. */
const resetMs = 30 * 60_000;
/** The first backoff after an attempt in which nothing was sent. */
const unsentMs = 1_000;
const firstBackoffMs = 30_000;
const longestBackoffMs = 30 * 60_000;
const jitter = 0.2;

export function isUnderWay({ state, startedAt }: Pair, now: number): boolean {
  return (state === 'gathering' || state === 'trying') && now - startedAt < attemptMs;
}

/** True if a host of the pair must have lost its direct path, because it wants one again. */
export function isLost({ state, at }: Pair, now: number): boolean {
  return state === 'direct' && now - at >= switchedMs;
}

export function mayStart(pair: Pair | undefined, now: number): boolean {
  return pair === undefined || (pair.state !== 'direct' && now >= pair.nextAt);
}

export interface Start {
  readonly peers: readonly [number, number];
  readonly by: number;
  readonly observers: number;
  readonly now: number;
  /** In [0, 1), for the jitter. */
  readonly random: number;
  /** The number of the first attempt of a pair without a row. */
  readonly first: number;
}

/** Begins an attempt. The next one may begin after the backoff, whatever becomes of this one. */
export function start(pair: Pair | undefined, { peers, by, observers, now, random, first }: Start): Pair {
  const [a, b] = [Math.min(...peers), Math.max(...peers)];
  const tries = (pair?.tries ?? 0) + 1;
  const attempt = pair === undefined ? first : pair.attempt + 1;
  const { isAnnounced, ended, resets } = pair?.data ?? {};
  // An event that is due states why the path before ended.
  const due = { ...(isAnnounced && { isAnnounced, ...(ended && { ended }) }) };
  const data = { by, observers, proven: [], ...due, ...(resets && { resets }) };
  const nextAt = now + backoffOf(tries, random);
  return { a, b, state: 'gathering', attempt, tries, startedAt: now, at: now, nextAt, data };
}

export function beginTrying(pair: Pair, now: number): Pair {
  return { ...pair, state: 'trying', at: now };
}

/** Ends an attempt for which a host stated no endpoint. */
export function restShort(pair: Pair, now: number, silent?: number): Pair {
  const delay = Math.min(unsentMs * 2 ** Math.min(Math.max(pair.tries - 1, 0), 30), longestBackoffMs);
  const data = { ...pair.data, ...(silent !== undefined && { silent }) };
  return { ...pair, state: 'resting', at: now, nextAt: now + delay, data };
}

/** Ends an attempt without a path. */
export function rest(pair: Pair, now: number, random: number): Pair {
  const { isOutdated, ...data } = pair.data;
  const resting: Pair = { ...pair, data, state: 'resting', at: now, nextAt: now + backoffOf(pair.tries, random) };
  return isOutdated ? reconsider(resting, now) : resting;
}

/** Ends an attempt of a pair whose NATs allow none. */
export function restLong(pair: Pair, now: number): Pair {
  return { ...pair, state: 'resting', at: now, nextAt: now + longestBackoffMs };
}

/** Records that a peer has proven the path. It is direct once both have. */
export function prove(pair: Pair, peer: number, now: number): Pair {
  const proven = [...new Set([...pair.data.proven, peer])];
  const next = { ...pair, data: { ...pair.data, proven } };
  return proven.length < 2 ? next : { ...next, state: 'direct', at: now };
}

/** Ends a direct path. After one that stood for a while, the next attempt may begin at once. */
export function end(pair: Pair, why: PathEnd, now: number, random: number): Pair {
  const isAtOnce = now - pair.at >= steadyMs;
  const ended = { ...pair, data: { ...pair.data, ended: why } };
  return isAtOnce ? { ...ended, state: 'resting', at: now, tries: 0, nextAt: now } : rest(ended, now, random);
}

/**
 * The endpoints of a peer changed: a resting pair may begin soon. A member can change its endpoints
 * all the time, and each attempt costs the other host: after two resets, each one comes later.
 *
 * @param tries the attempts that count for the backoff of the next one
 */
export function reconsider(pair: Pair, now: number, tries = 0): Pair {
  const { state, nextAt, startedAt, data } = pair;
  // The hosts try what they got: the next attempt has the new endpoints.
  if (state === 'trying') return data.isOutdated ? pair : { ...pair, data: { ...data, isOutdated: true } };
  if (state !== 'resting') return pair;
  const resets = (data.resets ?? []).filter((at) => now - at < resetMs);
  const soon = Math.max(now, startedAt + shortestMs * 2 ** Math.max(0, resets.length - 1));
  const isReset = pair.tries === tries && nextAt <= soon;
  if (isReset || soon > Math.max(now, nextAt)) return pair;
  return { ...pair, tries, nextAt: Math.min(nextAt, soon), data: { ...data, resets: [...resets, now] } };
}

function backoffOf(tries: number, random: number): number {
  const doublings = Math.min(Math.max(tries - 1, 0), 30);
  const delay = Math.min(firstBackoffMs * 2 ** doublings, longestBackoffMs);
  return Math.round(delay * (1 - jitter + 2 * jitter * random));
}
