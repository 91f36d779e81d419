import type { Underlay } from '../host-state/actual.ts';
import { findOutward } from '../host-state/underlay.ts';
import type { Peer, PeerId } from '../map/model.ts';
import type { Address } from '../net/cidr.ts';

/** The MTU of a tunnel over a path that does not carry packets of the usual size, as the daemon measured it. */
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
 * The least MTU that a measurement leads to: 1280, which every path of IPv6 carries (RFC 8200), without the 80 bytes that WireGuard
 * puts around a packet. A peer that answers small echoes only lowers the MTU to this and no further.
 */
export const leastPathMtu = 1200;

/** Bytes of a packet that passes everywhere. */
const small = 84;
/** Echoes of one size, of which one answer is enough: a packet that is lost by chance is no limit of the path. */
const echoesPerSize = 3;
/** How often the full size must fail, and a small one pass in between. */
const confirmations = 2;

/** Echoes to send: `count` of `bytes` each. */
export interface EchoRequest {
  readonly bytes: number;
  readonly count: number;
  /** The firewall mark of the packets; absent without one. */
  readonly mark?: number;
}

/**
 * Finds the largest packet that passes: yields the echoes to send, is resumed with whether one was answered, and returns the size.
 * That is `full` where this passes, which takes one echo; null where it is unknown, because small echoes are not reliably
 * answered either.
 *
 * @param guesses sizes to try first
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
  // The path may have been down for a while: a size that passes now was not too large then.
  if (yield { bytes: lost, count: echoesPerSize }) return null;
  return (yield { bytes: small, count: echoesPerSize }) ? passed : null;
}

/**
 * The next size to try between one that passed and one that did not; null when they are as near as they need to be. An MTU that is
 * some bytes too small costs nothing.
 */
function nextSize(passed: number, lost: number): number | null {
  return lost - passed <= 8 ? null : Math.floor((passed + lost) / 2);
}

/** The sizes to try first: the present limit, and whether the path carries more by now. */
export function guessSizes(known: PathMtu | null): readonly number[] {
  return known === null ? [leastPathMtu] : [known.mtu, known.mtu + 8];
}

/** Names the network around a host, so that what was measured in it is not used in another. */
export function nameUnderlay({ connected, gateways, uplinks, underlayMtu }: Underlay): string {
  const outward = findOutward({ connected, uplinks });
  const words = [...gateways, ...outward.map(({ prefix, link }) => `${prefix} ${link}`)];
  return [...words.toSorted(), underlayMtu ?? 'any'].join(', ');
}

/** What was measured, where it limits the tunnel: on this underlay, and below the MTU that fits it otherwise. */
export function findLimit(known: PathMtu | null, underlay: Underlay, fitted: number): PathMtu | null {
  if (known === null || known.mtu >= fitted || known.underlay !== nameUnderlay(underlay)) return null;
  return known.mtu < leastPathMtu ? { ...known, mtu: leastPathMtu } : known;
}

/** The peer that limits the MTU, by its name. */
export function nameLimiting({ peer }: PathMtu, peers: readonly Pick<Peer, 'id' | 'name'>[]): string {
  return peers.find(({ id }) => id === peer)?.name ?? `peer ${peer}`;
}

/** Why the MTU is lower than the one that fits the underlay, in words. */
export function describePathMtu(pathMtu: PathMtu, peers: readonly Pick<Peer, 'id' | 'name'>[]): string {
  return `measured to ${nameLimiting(pathMtu, peers)} on ${pathMtu.measuredAt.slice(0, 10)}`;
}

/** A path to a peer, as the daemon follows it. Times are in seconds of a clock that never jumps. */
export interface ProbedPath {
  readonly peer: PeerId;
  /** Where the peer's endpoint is: elsewhere is another path. */
  readonly host: Address | null;
  /** The counters when {@link use} was last judged; null right after a measurement, whose echoes count too. */
  readonly counters: PathCounters | null;
  /** Whether it was used since the last measurement; `unanswered` where much was sent lately and little came back. */
  readonly use: 'none' | 'used' | 'unanswered';
  /** When it was measured last; null before that. */
  readonly triedAt: number | null;
  /** How many measurements in a row came to nothing. */
  readonly failures: number;
  /** The largest packet that passed, and when that was measured; null while that is not known. */
  readonly size: number | null;
  readonly measuredAt: number;
}

/** A peer's bytes, as WireGuard counts them. */
export interface PathCounters {
  readonly rxBytes: number;
  readonly txBytes: number;
}

/** Seconds between two measurements of a path in use, and of one that seems to lose what is large. */
const every = 600;
const everyUncertain = 60;
/** Seconds until a measurement that came to nothing is tried again, at first. */
const retryAfter = 30;
/** Seconds after which a path that could not be measured any more limits nothing: its peer may be gone for good. */
const keptFor = 1_800;
/** Seconds between two changes of which the later one raises the MTU. */
const restBeforeRaise = 600;

/** A path that was not measured yet. */
export function newPath(peer: PeerId, host: Address | null): ProbedPath {
  return { peer, host, counters: null, use: 'none', triedAt: null, failures: 0, size: null, measuredAt: 0 };
}

/** The path after one more look at its peer. What a path to another endpoint carries is not known. */
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
  // Counters that grew smaller are those of a peer that was taken out and added again.
  if (sent < 0 || received < 0) return { ...path, host, counters };
  if (sent + received < 4 * full) return { ...path, host };
  // Large packets that vanish are sent again and again, and little comes back.
  return { ...path, host, counters, use: received < sent / 8 ? 'unanswered' : 'used' };
}

/** The path after a measurement; null is one that came to nothing, and changes no size that is known. */
export function recordMeasurement(path: ProbedPath, size: number | null, now: number): ProbedPath {
  const tried = { ...path, counters: null, use: 'none' as const, triedAt: now };
  if (size === null) return { ...tried, failures: path.failures + 1 };
  return { ...tried, failures: 0, size, measuredAt: now };
}

/** True when it is time to measure a path to a peer with a session. A path that is not used, and limits nothing, is left alone. */
export function isPathDue({ triedAt, use, failures, size }: ProbedPath, full: number, now: number): boolean {
  if (triedAt === null) return true;
  if (use === 'none' && (size === null || size >= full)) return false;
  const usual = use === 'unanswered' ? everyUncertain : every;
  const wait = failures === 0 ? usual : Math.min(every, retryAfter * 2 ** (failures - 1));
  return now - triedAt >= wait;
}

/** The path that limits the tunnel: the one of those not below the least MTU that carries the smallest packets. */
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

/** True where the MTU may change now: it is lowered at once, and raised some time after the last change. */
export function mayChange(from: number, to: number, changedAt: number | null, now: number): boolean {
  return to < from || changedAt === null || now - changedAt >= restBeforeRaise;
}
