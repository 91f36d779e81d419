/**
 * The direct paths of a host, as a pure state machine: which peers are reached without the relay.
 * Times are milliseconds of a monotonic clock.
 *
 * @module
 */
import { areKeepalives } from '../health/traffic.ts';
import type { ActualPeer } from '../host-state/actual.ts';
import type { PeerId } from '../map/model.ts';
import type { ProvenBy } from './attempt-state.ts';

export interface DirectPath {
  readonly peer: PeerId;
  /** Null for a path of an earlier process. */
  readonly attempt: number | null;
  /** Null for a path of an earlier process: either proof counts. */
  readonly by: ProvenBy | null;
  /** `proven`: the service has not sent the moment of the switch yet. */
  readonly state: 'proven' | 'switching' | 'direct';
  /** When the state began; the moment of the switch while switching. */
  readonly at: number;
  /** True until the result of a probe. */
  readonly isProbed: boolean;
  /** True if this host may have moved since the path last answered. */
  readonly isMoved: boolean;
  /** True if the last full-size probe had no answer, although other packets of the peer arrive. */
  readonly hasMissed: boolean;
  /** Null before the first observation of a direct path. */
  readonly flow: Flow | null;
}

/** What the counters of a peer show. */
interface Flow {
  readonly rxBytes: number;
  readonly txBytes: number;
  readonly seenAt: number;
  /** When new bytes of the peer were last observed, and the bytes sent by then. */
  readonly heardAt: number;
  readonly sentBytes: number;
  /** Before the first sent bytes since then that need an answer; null without any. */
  readonly unansweredSince: number | null;
  /** When more than keepalives, handshakes and probes were last exchanged. */
  readonly usedAt: number;
  /** All bytes by then, and those of probes since; null from the answer to a probe to its count. */
  readonly usedBytes: number | null;
  /** Observations since then that show a probe of the peer. */
  readonly probes: number;
  /** When it was first used since it last answered a probe; null if it was not. */
  readonly uncheckedSince: number | null;
}

export type PathEvent =
  | { readonly event: 'proven'; readonly peer: PeerId; readonly attempt: number; readonly by: ProvenBy }
  /** The message `switch`. Half of the round trip to the control plane passed already. */
  | {
      readonly event: 'switch';
      readonly peer: PeerId;
      readonly attempt: number;
      readonly switch_in_ms: number;
      readonly roundTrip: number;
    }
  /** The message `return`: the peer left the path. */
  | { readonly event: 'return'; readonly peer: PeerId }
  /** The underlay of this host may have changed. A path that still answers stays. */
  | { readonly event: 'moved' }
  | { readonly event: 'probed'; readonly peer: PeerId; readonly isAnswered: boolean }
  /** The moment of a switch. */
  | { readonly event: 'moment' }
  /** The peers with paths in WireGuard's table. */
  | { readonly event: 'observed'; readonly peers: ReadonlyMap<PeerId, Counters> };

export type Counters = Pick<ActualPeer, 'rxBytes' | 'txBytes' | 'keepalive'>;

export type PathAction =
  /** Moves the peer's address to the path, now. */
  | { readonly do: 'switch'; readonly peer: PeerId }
  /** Tests the path within 700 ms: by echoes, or without IPv6 by any answer through the tunnel. */
  | { readonly do: 'probe'; readonly peer: PeerId; readonly by: DirectPath['by'] }
  /** Moves the address back to the relay, and removes the peer. `why` is for the service. */
  | { readonly do: 'return'; readonly peer: PeerId; readonly why: PathEnd | null }
  /** Removes a peer that never carried packets. `why` is for the service: the peer may use it. */
  | { readonly do: 'forget'; readonly peer: PeerId; readonly why: PathEnd | null };

/** Why a host returns to the relay. `removed`: by a command or another program. */
export const pathEnds = ['idle', 'lost', 'moved', 'removed'] as const;
export type PathEnd = (typeof pathEnds)[number];

interface Handled {
  readonly paths: readonly DirectPath[];
  readonly actions: readonly PathAction[];
}

/**
 * Milliseconds without an answer after which a path is probed. With the time until an observation,
 * and that of the probe, a dead path ends within 3 s.
 */
const quietMs = 1_000;
/**
 * Milliseconds without a packet of the peer after which a path that was used is probed once. The
 * peer may have left it, and send through the relay what WireGuard drops here.
 */
const silentMs = 2_000;
/**
 * Milliseconds after which a path in use is probed again: a router may come to drop large packets,
 * while small ones pass.
 */
const checkMs = 30_000;
/** Milliseconds without use after which a path ends. */
const idleMs = 300_000;
/** Milliseconds for which a proven path waits for its switch. */
const switchWithinMs = 10_000;
/** Milliseconds between observations of direct paths. */
const observeMs = 1_000;
/** The fewest bytes of a peer's probe: it has full-size packets, and as many come back. */
const leastProbeBytes = 1_000;
/** The most observations after use that count as probes of the peer, which may have moved too. */
const mostProbes = 4;

/** Returns the peers that are reached over a direct path. */
export function pathsInUse(paths: readonly DirectPath[]): readonly PeerId[] {
  return paths.filter(({ state }) => state === 'direct').map(({ peer }) => peer);
}

/** The paths that an earlier process left in WireGuard's table. */
export function resumePaths(peers: readonly PeerId[], now: number): readonly DirectPath[] {
  return peers.map((peer) => ({
    ...{
      peer,
      attempt: null,
      by: null,
      state: 'direct',
      at: now,
      isProbed: false,
      isMoved: false,
      hasMissed: false,
      flow: null,
    },
  }));
}

/** Handles an event. The actions are to be applied immediately, in order. */
export function handlePathEvent(paths: readonly DirectPath[], event: PathEvent, now: number): Handled {
  if (event.event === 'proven') {
    const { peer, attempt, by } = event;
    const proven: DirectPath = {
      peer,
      attempt,
      by,
      state: 'proven',
      at: now,
      isProbed: false,
      isMoved: false,
      hasMissed: false,
      flow: null,
    };
    const isUsed = paths.some((each) => each.peer === peer && each.state === 'direct');
    return { paths: isUsed ? paths : [...paths.filter((each) => each.peer !== peer), proven], actions: [] };
  }
  const handled = paths.map((path) => handle(path, event, now));
  return { paths: handled.flatMap(({ path }) => path ?? []), actions: handled.flatMap(({ actions }) => actions) };
}

/** When to observe the paths, after they were observed last; null without any. */
export function nextMoment(paths: readonly DirectPath[], observedAt: number): number | null {
  if (paths.length === 0) return null;
  return Math.min(
    ...paths.map(({ state, at }) =>
      state === 'switching' ? at : state === 'proven' ? at + switchWithinMs : observedAt + observeMs,
    ),
  );
}

/** True if the counters of no path matter until this host sends something. */
export function areAnswered(paths: readonly DirectPath[]): boolean {
  return paths.every(({ state, flow, isProbed }) => {
    return (
      state === 'direct' && !isProbed && flow !== null && flow.unansweredSince === null && flow.uncheckedSince === null
    );
  });
}

interface HandledPath {
  /** Null once the path ended. */
  readonly path: DirectPath | null;
  readonly actions: readonly PathAction[];
}

function handle(path: DirectPath, event: Exclude<PathEvent, { event: 'proven' }>, now: number): HandledPath {
  const { peer, state, attempt } = path;
  const stay: HandledPath = { path, actions: [] };
  if ('peer' in event && event.peer !== peer) return stay;
  switch (event.event) {
    case 'switch': {
      if (state !== 'proven' || event.attempt !== attempt) return stay;
      const at = now + Math.max(0, event.switch_in_ms - event.roundTrip / 2);
      return { path: { ...path, state: 'switching', at }, actions: [] };
    }
    case 'return':
      // The peer lost the path because this host moved, or slept.
      return end(path, path.isMoved ? 'moved' : null);
    case 'moved': {
      if (state !== 'direct') return end(path, 'moved');
      return { path: { ...path, isProbed: true, isMoved: true }, actions: [{ do: 'probe', peer, by: path.by }] };
    }
    case 'probed': {
      if (!path.isProbed) return stay;
      if (!event.isAnswered) return miss(path, now);
      const answered = { heardAt: now, unansweredSince: null, uncheckedSince: null, usedBytes: null };
      const flow = path.flow && { ...path.flow, ...answered, sentBytes: path.flow.txBytes };
      return { path: { ...path, isProbed: false, isMoved: false, hasMissed: false, flow }, actions: [] };
    }
    case 'moment':
      return state === 'switching' && now >= path.at ? begin(path, now) : stay;
    case 'observed':
      return observe(path, event.peers.get(peer) ?? null, now);
  }
}

/** A path ends without an answer. While packets of the peer arrive, two answers must be missing. */
function miss(path: DirectPath, now: number): HandledPath {
  const { flow, isMoved, hasMissed } = path;
  const isHeard = flow !== null && flow.unansweredSince === null && now - flow.heardAt < silentMs;
  if (!isHeard || isMoved || hasMissed) return end(path, isMoved ? 'moved' : 'lost');
  return { path: { ...path, isProbed: false, hasMissed: true }, actions: [] };
}

function end(path: DirectPath, why: PathEnd | null): HandledPath {
  const { peer, state } = path;
  return { path: null, actions: [{ do: state === 'direct' ? 'return' : 'forget', peer, why }] };
}

function observe(path: DirectPath, counters: Counters | null, now: number): HandledPath {
  const { peer, state, at } = path;
  if (state === 'proven') return now < at + switchWithinMs ? { path, actions: [] } : end(path, 'lost');
  if (state === 'switching') return { path, actions: [] };
  if (counters === null) return end(path, 'removed');
  const flow = trackFlow(path.flow, counters, path.isProbed, now);
  if (now - flow.usedAt >= idleMs) return end(path, 'idle');
  const isQuiet = flow.unansweredSince !== null && now - flow.unansweredSince >= quietMs;
  const isSilent = flow.uncheckedSince !== null && now - flow.heardAt >= silentMs;
  const isDue = flow.uncheckedSince !== null && now - flow.uncheckedSince >= checkMs;
  const probes = (isQuiet || isSilent || isDue || path.hasMissed) && !path.isProbed;
  return {
    path: { ...path, flow, isProbed: path.isProbed || probes },
    actions: probes ? [{ do: 'probe', peer, by: path.by }] : [],
  };
}

function begin(path: DirectPath, now: number): HandledPath {
  const { peer, by } = path;
  // A handshake proves no size of packets: the path must answer through the tunnel.
  const isProbed = by === 'handshake';
  const used: DirectPath = { ...path, state: 'direct', at: now, isProbed };
  return { path: used, actions: [{ do: 'switch', peer }, ...(isProbed ? [{ do: 'probe', peer, by } as const] : [])] };
}

function trackFlow(before: Flow | null, counters: Counters, isProbed: boolean, now: number): Flow {
  const { rxBytes, txBytes, keepalive } = counters;
  // Counters decrease when a peer is removed and added again.
  if (before === null || rxBytes < before.rxBytes || txBytes < before.txBytes) {
    const counted = { rxBytes, txBytes, seenAt: now, heardAt: now, sentBytes: txBytes };
    const use = { usedAt: before?.usedAt ?? now, usedBytes: rxBytes + txBytes, probes: 0 };
    return { ...counted, ...use, unansweredSince: null, uncheckedSince: before === null ? null : now };
  }
  const seen = { rxBytes, txBytes, seenAt: now, ...trackUse(before, counters, isProbed, now) };
  if (rxBytes > before.rxBytes) return { ...seen, heardAt: now, sentBytes: txBytes, unansweredSince: null };
  const { heardAt, sentBytes, unansweredSince } = before;
  const needsAnswer = !areKeepalives(txBytes - sentBytes, (now - heardAt) / 1_000, keepalive);
  return {
    ...seen,
    heardAt,
    sentBytes,
    unansweredSince: unansweredSince ?? (needsAnswer ? Math.max(before.seenAt, now - observeMs) : null),
  };
}

type Use = Pick<Flow, 'usedAt' | 'usedBytes' | 'probes' | 'uncheckedSince'>;

/**
 * Probes are no use: otherwise each of them, and each answer, would be the reason for another one,
 * and no path would end.
 */
function trackUse(before: Flow, { rxBytes, txBytes }: Counters, isProbed: boolean, now: number): Use {
  const { usedAt, usedBytes, probes, uncheckedSince } = before;
  const bytes = rxBytes + txBytes;
  if (isProbed || usedBytes === null) return { usedAt, usedBytes: bytes, probes, uncheckedSince };
  if (bytes - usedBytes <= upkeepBytes((now - usedAt) / 1_000)) return { usedAt, usedBytes, probes, uncheckedSince };
  const [received, sent] = [rxBytes - before.rxBytes, txBytes - before.txBytes];
  const isEcho = received >= leastProbeBytes && Math.abs(received - sent) <= upkeepBytes(0);
  if (isEcho && probes < mostProbes) return { usedAt, usedBytes: bytes, probes: probes + 1, uncheckedSince };
  return { usedAt: now, usedBytes: bytes, probes: 0, uncheckedSince: uncheckedSince ?? now };
}

/** The most bytes that keepalives and handshakes of both sides take, without any use. */
function upkeepBytes(seconds: number): number {
  const keepalives = 2 * 32 * (1 + Math.floor(seconds / 25));
  const handshakes = (148 + 92) * (1 + Math.floor(seconds / 110));
  return keepalives + handshakes;
}
