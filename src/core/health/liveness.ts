/**
 * Whether a connector lives, measured by probes through the tunnel. Times are in seconds of a clock that stands
 * still while the host sleeps.
 *
 * @module
 */

/** What is known of one connector. */
export interface Liveness {
  /** `back` is one that was silent and is heard again: it is trusted after a while. */
  readonly state: 'trusted' | 'silent' | 'back';
  /** Seconds of looking in which nothing was heard of it; endless for one that is silent, until it is heard. */
  readonly silence: number;
  /** Anything came from it since the first question. */
  readonly heard: boolean;
  /** Seconds of that silence in which another connector was heard, which shows that this host is not cut off itself. */
  readonly missed: number;
  /** It answers what it is asked, as far as is known; a firewall may keep it from that for ever. */
  readonly answers: boolean;
  /** Seconds for which it has been well without a break. */
  readonly well: number;
  /** How often it fell silent lately. */
  readonly failures: number;
}

/** Unanswered probes in a row after which a connector that used to answer is dead. */
const patience = 3;
/**
 * Seconds of silence of one that is only ever heard: who receives something sends a keepalive after 10 s (KEEPALIVE_TIMEOUT),
 * and a handshake is tried again after 5 s (REKEY_TIMEOUT, drivers/net/wireguard/messages.h).
 */
const patienceWithoutProbes = 15;
/**
 * Seconds of silence of one in service that was never heard, while another is: within them it is asked four times, and a handshake is
 * forced once, which a firewall does not swallow.
 */
const patienceWithNew = 2;
/** Seconds for an answer or a handshake of one that was never heard, before another handshake is begun: it may have far to go. */
export const renewAfter = 1;
/** Seconds for which one that was silent must be well before it is trusted; doubled with each failure more. */
const probation = 60;
const longestProbation = 960;
/** Seconds of being well that prove that one is not only up for a moment: then it is better than one that is silent. */
const firstSigns = 5;
/** Seconds of being well after which failures are forgotten. */
const memory = 3600;

/** A connector before its first probe. */
export function unknownLiveness(state: Liveness['state']): Liveness {
  const failures = state === 'trusted' ? 0 : 1;
  // Of one that is known to be silent only something new counts.
  return { state, silence: 0, heard: state === 'silent', missed: 0, answers: false, well: 0, failures };
}

/** It answered, or something else came from it. */
export function recordAnswer(liveness: Liveness, by: 'answer' | 'traffic'): Liveness {
  return { ...liveness, silence: 0, heard: true, missed: 0, answers: liveness.answers || by === 'answer' };
}

/** The probe interval changes: with the longer one, a connector was silent for long without a probe. */
export function resetSilence(liveness: Liveness): Liveness {
  return liveness.state === 'silent' ? liveness : { ...liveness, silence: 0, missed: 0 };
}

/** True of one that is still to be heard for the first time. */
export function isNew({ heard, state }: Liveness): boolean {
  return !heard && state !== 'silent';
}

/** How a connector is looked at. */
export interface ProbeObservation {
  /** Since the last look. */
  readonly seconds: number;
  /** Seconds between two questions. */
  readonly every: number;
  /** It carries packets, for want of a better one perhaps. */
  readonly inService: boolean;
  /** Another connector is heard. */
  readonly hasOther: boolean;
}

/**
 * Time spent looking went by. Of a pause that took longer than it was meant to, no more than `every` counts: the silence of one
 * that was not probed proves nothing.
 */
export function recordTime(before: Liveness, { seconds, every, inService, hasOther }: ProbeObservation): Liveness {
  const spent = Math.min(seconds, every);
  const silence = before.silence + spent;
  const missed = hasOther ? before.missed + spent : 0;
  const { state, answers } = before;
  const isMissed = inService && isNew(before) && missed >= patienceWithNew;
  if (isMissed || silence >= (answers ? patience * every : patienceWithoutProbes)) {
    const failures = before.failures + (state === 'silent' ? 0 : 1);
    // When it comes back a firewall may have come with it.
    return { ...before, state: 'silent', silence: Number.POSITIVE_INFINITY, answers: false, well: 0, failures };
  }
  const well = before.well + spent;
  const failures = well > memory ? 0 : before.failures;
  return { ...before, state: nextState({ ...before, well }, inService), silence, missed, well, failures };
}

function nextState({ state, well, answers, failures }: Liveness, inService: boolean): Liveness['state'] {
  // Until one that is only heard is heard, nothing can be said of it.
  const signs = answers ? firstSigns : patienceWithoutProbes + firstSigns;
  if (state === 'silent') return well < signs ? 'silent' : 'back';
  const trusted = Math.min(longestProbation, probation * 2 ** Math.max(0, failures - 1));
  // A connector that took over keeps serving when another one comes back.
  return state === 'back' && (inService || well >= trusted) ? 'trusted' : state;
}

/**
 * True when a handshake is to be forced, to distinguish a connector that was never heard from a dead one. Its session, where it has one, is
 * lost with that: only of one in service, that another can stand in for, is it worth it.
 */
export function needsHandshake(liveness: Liveness, inService: boolean): boolean {
  return inService && isNew(liveness) && liveness.missed >= renewAfter;
}

/** True when a question went unanswered for so long that the counters are worth a look: something else may have come. */
export function isDoubtful(liveness: Liveness, { every }: Pick<ProbeObservation, 'every'>): boolean {
  const { silence, answers } = liveness;
  return isNew(liveness) || silence > (answers ? 1.5 * every : every);
}
