/**
 * One bounded attempt to reach a peer directly, as a pure state machine. Times are milliseconds of
 * a monotonic clock.
 *
 * WireGuard sends one initiation when a peer is added with an endpoint and a keepalive, and the
 * next after 5 s (REKEY_TIMEOUT, drivers/net/wireguard/messages.h). A candidate ends before that:
 * each packet is the result of an action here. Between candidates the peer has no endpoint, and so
 * sends nothing, but answers.
 *
 * @module
 */
import type { ActualPeer } from '../host-state/actual.ts';
import { formatEndpoint, type SocketEndpoint } from '../net/endpoint.ts';
import type { RateLimit } from '../util/backoff.ts';
import type {
  Advanced,
  Attempt,
  AttemptAction,
  AttemptObservation,
  TriedCandidate,
  TryMessage,
} from './attempt-state.ts';
import { mostCandidates } from './local-candidates.ts';
import { listTried } from './path-record.ts';
import { isForProbes } from './probe-address.ts';
import { type Candidate, type EndpointLimits, scheduleCandidates } from './schedule-candidates.ts';

/** Milliseconds of an attempt from its start. */
export const attemptMs = 12_000;
/**
 * Additions with an endpoint on one host, for all its attempts. Each sends an initiation. The rest
 * of 64 packets a minute is for responses.
 */
export const additionRate: RateLimit = { most: 48, withinMs: 60_000 };
/**
 * Seconds between keepalives of a peer under trial: each side observes soon that the other has the
 * session too. Without a session, initiations are 5 s apart all the same.
 */
export const trialKeepalive = 1;
/** Additions for one candidate. */
const mostAdditions = 3;
/** Bytes for one candidate without a handshake: 7 responses, or 4 initiations. */
const mostBytes = 7 * 92;
/** Bytes of messages without data (drivers/net/wireguard/messages.h). */
const initiationSize = 148;
const responseSize = 92;
const pollMs = 100;
/**
 * Milliseconds after which the first host adds its peer again: both initiations were in flight at
 * once. Where they were not, and the response takes longer, the new handshake replaces a session.
 */
const crossedMs = 100;
/**
 * Milliseconds by which a host behind a symmetric NAT alone starts later. Only its handshake can
 * arrive, from a port that the peer does not know: the peer must have sent before, so that its NAT
 * lets the packet pass, and must not be added again just then.
 */
const symmetricMs = 250;
/** In the window of candidates in the same LAN. */
const lanPollMs = 50;
const lanMs = 300;
/** Milliseconds after a handshake within which a keepalive of the peer arrives. */
const dataMs = 1_500;
/** Unanswered probes after which the result counts. */
const mostProbes = 3;

export interface AttemptOptions extends EndpointLimits {
  readonly now: number;
  readonly canProbe: boolean;
  /** Milliseconds from this host to the control plane and back. Half of it passed already. */
  readonly roundTrip: number;
}

/** Begins the attempt of a message that just arrived. */
export function beginAttempt(message: TryMessage, { now, canProbe, roundTrip, ...around }: AttemptOptions): Attempt {
  const isLater = message.nats?.own === 'symmetric' && message.nats.peer !== 'symmetric';
  return {
    peer: message.peer,
    number: message.attempt,
    first: message.first,
    canProbe,
    startAt: now + Math.max(0, message.start_in_ms - roundTrip / 2) + (isLater ? symmetricMs : 0),
    schedule: scheduleCandidates(message, around),
    ...{ state: 'new', at: -1, isSending: false, heard: 0, settlesAt: 0, endsAt: 0, additions: 0, sentBefore: 0 },
    ...{ probes: 0, isNarrow: false },
  };
}

/** Returns what to do now. The actions are applied in order before the next call. */
export function advanceAttempt(attempt: Attempt, observation: AttemptObservation): Advanced {
  const { now, entry } = observation;
  if (attempt.state === 'ended') return { attempt, actions: [], nextAt: null };
  if (attempt.state === 'new') {
    // A peer that carries packets has a path already. Its session must not end.
    if (entry?.allowedIps.some((prefix) => !isForProbes(prefix))) return endWith(attempt, []);
    const waiting: Attempt = { ...attempt, state: 'trying' };
    const actions: AttemptAction[] = [{ do: 'renew', endpoint: null }];
    return { attempt: waiting, actions, nextAt: nextOf(waiting, now) };
  }
  if (attempt.state === 'probing' || (entry !== null && entry.latestHandshake !== null))
    return verify(attempt, observation);
  if (now >= attempt.startAt + attemptMs) return giveUp(attempt);
  return tryNext(attempt, observation);
}

function tryNext(before: Attempt, { now, entry, isPaused = false }: AttemptObservation): Advanced {
  const attempt = listen(before, entry, now);
  const { schedule, startAt, at, isSending, first, heard, settlesAt } = attempt;
  const { candidates } = schedule;
  const elapsed = now - startAt;
  const sent = attempt.sentBefore + (entry?.txBytes ?? 0);
  const renew = (endpoint: SocketEndpoint | null, index: number): Advanced => {
    const renewed = renewWith(attempt, endpoint, index, { now, sent });
    return { attempt: renewed, actions: [{ do: 'renew', endpoint }], nextAt: nextOf(renewed, now) };
  };
  const wait: Advanced = { attempt, actions: [], nextAt: nextOf(attempt, now) };
  if (sent > mostBytes) return isSending ? renew(null, at) : giveUp(attempt);
  if (now < settlesAt) return wait;
  const due = candidates.findLastIndex((each) => each.at <= elapsed);
  const next = candidates[due];
  // A busy host may miss a whole window. It tries the last candidate even then.
  const isOpen = next !== undefined && (elapsed < next.until || due === candidates.length - 1);
  if (due > at && isOpen && !isPaused) return renew(next.endpoint, due);
  const current = candidates[at];
  if (current === undefined || !isSending) return wait;
  if (now >= attempt.endsAt) return renew(null, at);
  // Two initiations that are in flight at once defeat each other. The source of the
  // peer's packet is its true endpoint.
  const isDefeated = entry === null || (first && heard > 0);
  const mayRenew = attempt.additions < mostAdditions && !isPaused;
  return isDefeated && mayRenew ? renew(entry?.endpoint ?? current.endpoint, at) : wait;
}

/** While packets of the peer arrive, its handshake is about to complete, and the peer stays. */
function listen(attempt: Attempt, entry: ActualPeer | null, now: number): Attempt {
  const heard = entry?.rxBytes ?? 0;
  if (heard < attempt.heard + initiationSize) return attempt;
  const { schedule, at, first } = attempt;
  const { roundTrip = 0 } = schedule.candidates[Math.max(at, 0)] ?? {};
  return { ...attempt, heard, settlesAt: now + (first ? Math.min(crossedMs, roundTrip) : roundTrip) };
}

function renewWith(
  attempt: Attempt,
  endpoint: SocketEndpoint | null,
  at: number,
  { now, sent }: { readonly now: number; readonly sent: number },
): Attempt {
  const isNext = at !== attempt.at;
  const isRepeated = !isNext && endpoint !== null;
  const { roundTrip = 0, until = 0 } = attempt.schedule.candidates[at] ?? {};
  return {
    ...attempt,
    ...{ at, isSending: endpoint !== null, heard: 0 },
    ...(isNext && { endsAt: Math.max(attempt.startAt + until, now + roundTrip) }),
    settlesAt: isRepeated ? now + roundTrip : now,
    additions: isNext ? 1 : attempt.additions + (endpoint === null ? 0 : 1),
    sentBefore: isNext ? 0 : sent,
  };
}

/** The peer has a session on this host. A session that both hosts have is not touched. */
function verify(before: Attempt, observation: AttemptObservation): Advanced {
  const { now, entry, probe, isPaused = false } = observation;
  if (entry === null || entry.latestHandshake === null) return giveUp(before);
  const isNew = before.state !== 'probing';
  const attempt: Attempt = { ...before, state: 'probing', ...(isNew && { settlesAt: now + dataMs, probes: 0 }) };
  if (probe === 'full') return endWith(attempt, [{ do: 'prove', by: 'probe' }]);
  const isShared = hasData(entry);
  const isByHandshake = { do: 'prove', by: 'handshake' } as const;
  if (!attempt.canProbe && isShared) return endWith(attempt, [isByHandshake]);
  if (now >= attempt.startAt + attemptMs) return giveUp(attempt, entry.endpoint);
  const isAnswered = probe !== undefined;
  const probes = attempt.probes + (isAnswered ? 1 : 0);
  const isNarrow = attempt.isNarrow || probe === 'small';
  const next = { attempt: { ...attempt, probes, isNarrow }, nextAt: now + pollMs };
  if (attempt.canProbe && probes < mostProbes) {
    return { ...next, actions: isNew || isAnswered ? [{ do: 'probe' }] : [] };
  }
  // A path that carries only small packets is not usable.
  if (isNarrow) return giveUp(attempt, entry.endpoint);
  // A peer without IPv6 answers no probe.
  if (isShared) return endWith(attempt, [isByHandshake]);
  if (now < attempt.settlesAt) return { ...next, actions: [] };
  if (attempt.additions >= mostAdditions || isPaused || entry.endpoint === null) return giveUp(attempt, entry.endpoint);
  const sent = attempt.sentBefore + entry.txBytes;
  const again = renewWith({ ...attempt, state: 'trying' }, entry.endpoint, attempt.at, { now, sent });
  return { attempt: again, actions: [{ do: 'renew', endpoint: entry.endpoint }], nextAt: nextOf(again, now) };
}

/**
 * True if data of the peer arrived, which proves that it has the session too. A response does not:
 * the peer may have been removed and added since.
 */
function hasData({ rxBytes }: ActualPeer): boolean {
  return rxBytes > responseSize && (rxBytes - responseSize) % initiationSize !== 0;
}

/** @param answered the endpoint of the peer, if it completed a handshake */
function giveUp(attempt: Attempt, answered: SocketEndpoint | null = null): Advanced {
  const { schedule, at, probes } = attempt;
  const before = probes > 0 ? (schedule.candidates[at]?.endpoint ?? null) : null;
  const tried = listTried(attempt, answered ?? before).map(({ endpoint, outcome }): TriedCandidate => {
    return { endpoint, outcome: outcome === 'reached' ? 'handshake' : outcome };
  });
  const refused = schedule.refused.map((endpoint): TriedCandidate => {
    return { endpoint: formatEndpoint(endpoint), outcome: 'refused' };
  });
  // The source of the peer's packet may be one more endpoint.
  return endWith(attempt, [{ do: 'give-up', tried: [...tried, ...refused].slice(-mostCandidates) }]);
}

function endWith(attempt: Attempt, actions: readonly AttemptAction[]): Advanced {
  return { attempt: { ...attempt, state: 'ended' }, actions, nextAt: null };
}

/** The next poll, or earlier the next moment of the schedule. */
function nextOf({ schedule, startAt, settlesAt }: Attempt, now: number): number {
  const moments = schedule.candidates.flatMap((each: Candidate) => [startAt + each.at, startAt + each.until]);
  const poll = now < startAt + lanMs ? lanPollMs : pollMs;
  const later = [startAt, settlesAt, startAt + attemptMs, ...moments].filter((moment) => moment > now);
  return Math.min(now + poll, ...later);
}
