import type { Underlay } from '../host-state/actual.ts';
import { findOutward } from '../host-state/underlay.ts';
import type { Peer, PeerId } from '../map/model.ts';
import type { Address } from '../net/cidr.ts';

/** A tunnel's MTU on a path that carries less than usual, as the daemon measured it. */
export interface PathMtu {
  readonly mtu: number;
  /** The peer to which no larger packet passes. */
  readonly peer: PeerId;
  /** Where it was measured, as {@link nameUnderlay} names it. */
  readonly underlay: string;
  /** ISO 8601. */
  readonly measuredAt: string;
}

/**
 * The lowest MTU that a measurement sets: 1280, which every IPv6 path carries (RFC 8200), minus the
 * 80 bytes that WireGuard adds. A peer that answers only small echoes cannot go below.
 */
export const leastPathMtu = 1200;

/** Bytes of a packet that passes on every path. */
const small = 84;
/** Echoes of one size; one answer is enough. A randomly lost packet is no limit of the path. */
const echoesPerSize = 3;
/** How often the full size must fail while a small packet passes in between. */
const confirmations = 2;

/** Echoes to send: `count` of `bytes` each. */
export interface EchoRequest {
  readonly bytes: number;
  readonly count: number;
  /** The firewall mark of the packets; absent without one. */
  readonly mark?: number;
  /** The source and its interface, which link-local addresses require; absent for any. */
  readonly from?: { readonly address: Address; readonly link: string };
}

/**
 * Finds the largest packet that passes. Yields echoes to send, and is resumed with whether any was
 * answered. Returns `full` if that passes, after one echo, and null if small echoes are not
 * reliably answered either. Tries `guesses` first.
 */
export function* searchSize(full: number, guesses: readonly number[]): Generator<EchoRequest, number | null, boolean> {
  if (yield { bytes: full, count: 1 }) return full;
  for (let round = 0; round < confirmations; round += 1) {
    if (!(yield { bytes: small, count: echoesPerSize })) return null;
    if (yield { bytes: full, count: echoesPerSize }) return full;
  }
  let passed = small;
  let lost = full;
  const waiting = [...guesses];
  for (;;) {
    const size = waiting.shift() ?? nextSize(passed, lost);
    if (size === null) break;
    if (size <= passed || size >= lost) continue;
    if (yield { bytes: size, count: echoesPerSize }) passed = size;
    else lost = size;
  }
  // The path may have been down for a while. If the lost size passes now, it was not too large.
  if (yield { bytes: lost, count: echoesPerSize }) return null;
  return (yield { bytes: small, count: echoesPerSize }) ? passed : null;
}

/** The next size between both, or null once they are close: a few bytes too small cost nothing. */
function nextSize(passed: number, lost: number): number | null {
  return lost - passed <= 8 ? null : Math.floor((passed + lost) / 2);
}

/** The present limit, and a larger size to detect that the path now carries more. */
export function guessSizes(known: PathMtu | null): readonly number[] {
  return known === null ? [leastPathMtu] : [known.mtu, known.mtu + 8];
}

/** Names the network around a host, so that a measurement is not used in another network. */
export function nameUnderlay({ connected, gateways, uplinks, underlayMtu }: Underlay): string {
  const outward = findOutward({ connected, uplinks });
  const words = [...gateways, ...outward.map(({ prefix, link }) => `${prefix} ${link}`)];
  return [...words.toSorted(), underlayMtu ?? 'any'].join(', ');
}

/** Returns the measurement if it is of this underlay and below the MTU that fits, else null. */
export function findLimit(known: PathMtu | null, underlay: Underlay, fitted: number): PathMtu | null {
  if (known === null || known.mtu >= fitted || known.underlay !== nameUnderlay(underlay)) return null;
  return known.mtu < leastPathMtu ? { ...known, mtu: leastPathMtu } : known;
}

/** The name of the peer that limits the MTU. */
export function nameLimiting({ peer }: PathMtu, peers: readonly Pick<Peer, 'id' | 'name'>[]): string {
  return peers.find(({ id }) => id === peer)?.name ?? `peer ${peer}`;
}

/** Explains why the MTU is lower than the one that fits the underlay. */
export function describePathMtu(pathMtu: PathMtu, peers: readonly Pick<Peer, 'id' | 'name'>[]): string {
  return `measured to ${nameLimiting(pathMtu, peers)} on ${pathMtu.measuredAt.slice(0, 10)}`;
}

/** A path to a peer, as the daemon tracks it. Times are in seconds of a monotonic clock. */
export interface ProbedPath {
  readonly peer: PeerId;
  /** The host of the peer's endpoint. Another host is another path. */
  readonly host: Address | null;
  /** Counters when {@link use} was judged. Null after a measurement, whose echoes count too. */
  readonly counters: PathCounters | null;
  /** Use since the last measurement. `unanswered`: much was sent recently, little came back. */
  readonly use: 'none' | 'used' | 'unanswered';
  /** The time of the last measurement; null before the first. */
  readonly triedAt: number | null;
  /** The number of consecutive measurements without a result. */
  readonly failures: number;
  /** The largest packet that passed, and when it was measured; null while unknown. */
  readonly size: number | null;
  readonly measuredAt: number;
}

/** A peer's bytes, as WireGuard counts them. */
export interface PathCounters {
  readonly rxBytes: number;
  readonly txBytes: number;
}

/** Seconds between measurements of a path in use, and of a path that loses large packets. */
const every = 600;
const everyUncertain = 60;
/** Seconds until the first retry of a measurement without a result. */
const retryAfter = 30;
/** Seconds for which a path that cannot be measured limits the MTU: its peer may be gone. */
const keptFor = 1_800;
/** Seconds between two changes if the later one raises the MTU. */
const restBeforeRaise = 600;

export function newPath(peer: PeerId, host: Address | null): ProbedPath {
  return { peer, host, counters: null, use: 'none', triedAt: null, failures: 0, size: null, measuredAt: 0 };
}

/** Adds an observation of the path's peer. A new endpoint resets the path. */
export function trackPath(
  known: ProbedPath,
  { host, rxBytes, txBytes }: PathCounters & Pick<ProbedPath, 'host'>,
  full: number,
): ProbedPath {
  const path = known.host === null || known.host === host ? known : newPath(known.peer, host);
  const counters = { rxBytes, txBytes };
  if (path.counters === null) return { ...path, host, counters };
  const sent = txBytes - path.counters.txBytes;
  const received = rxBytes - path.counters.rxBytes;
  // Counters decrease when a peer is removed and added again.
  if (sent < 0 || received < 0) return { ...path, host, counters };
  if (sent + received < 4 * full) return { ...path, host };
  // Large packets that vanish are retransmitted, and little comes back.
  return { ...path, host, counters, use: received < sent / 8 ? 'unanswered' : 'used' };
}

/** Adds a measurement; null, without a result, keeps the known size. */
export function recordMeasurement(path: ProbedPath, size: number | null, now: number): ProbedPath {
  const tried = { ...path, counters: null, use: 'none' as const, triedAt: now };
  if (size === null) return { ...tried, failures: path.failures + 1 };
  return { ...tried, failures: 0, size, measuredAt: now };
}

/** True if a path with a session must be measured, unless it is unused and limits nothing. */
export function isPathDue({ triedAt, use, failures, size }: ProbedPath, full: number, now: number): boolean {
  if (triedAt === null) return true;
  if (use === 'none' && (size === null || size >= full)) return false;
  const usual = use === 'unanswered' ? everyUncertain : every;
  const wait = failures === 0 ? usual : Math.min(every, retryAfter * 2 ** (failures - 1));
  return now - triedAt >= wait;
}

/** Returns the path with the smallest limiting size, without those below the lowest MTU. */
export function findNarrowest(
  paths: Iterable<ProbedPath>,
  full: number,
  now: number,
): (ProbedPath & { readonly size: number }) | null {
  let narrowest: (ProbedPath & { readonly size: number }) | null = null;
  for (const path of paths) {
    const { size, measuredAt } = path;
    if (size === null || size < leastPathMtu || size >= full || now - measuredAt > keptFor) continue;
    if (narrowest === null || size < narrowest.size) narrowest = { ...path, size };
  }
  return narrowest;
}

/** True if the MTU may change. It is lowered at once, and raised some time after a change. */
export function mayChange(from: number, to: number, changedAt: number | null, now: number): boolean {
  return to < from || changedAt === null || now - changedAt >= restBeforeRaise;
}
