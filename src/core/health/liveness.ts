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
  /** Whether it answers what it is asked; a firewall may keep it from that for ever. Null until that is known. */
  readonly answers: boolean | null;
  /** Seconds from the first to the last of the answers that followed one another; null without one. */
  readonly answered: number | null;
  /** Seconds since its last answer, or since the first question. */
  readonly unanswered: number;
  /** Seconds since a handshake was forced to learn whether it lives; null without one, or once something came. */
  readonly forced: number | null;
  /** Seconds for which it has been well without a break; of a new one, since it was first heard. */
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
 * Seconds over which one that was mute must answer before it counts as answering. A reload of a firewall lets a few probes
 * through before it drops them again.
 */
const proofOfMute = 10;
/** The same of a silent one, which has to be well for longer than that before it is used: two answers of a standby. */
const proofOfSilent = 2;
/** Seconds for an answer or a handshake of a new one, before another handshake is begun: it may have far to go. */
export const renewAfter = 1;
/** Seconds by which a timer may be early. */
export const inexact = 0.1;
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
  const known = state === 'silent' ? { heard: true, answers: false } : { heard: false, answers: null };
  return { state, silence: 0, ...known, answered: null, unanswered: 0, forced: null, well: 0, failures };
}

/** It answered, or something else came from it. */
export function recordAnswer(liveness: Liveness, by: 'answer' | 'traffic'): Liveness {
  // Questions from before it was first heard may be lost, and later answers on the way: neither shows a firewall.
  const isMute = liveness.well >= renewAfter - inexact ? false : null;
  const heard = { ...liveness, silence: 0, heard: true, forced: null };
  if (by === 'traffic') return { ...heard, answers: liveness.answers ?? isMute };
  const answered = liveness.answered === null ? 0 : liveness.answered + liveness.unanswered;
  const proof = liveness.state === 'silent' ? proofOfSilent : proofOfMute;
  const answers = liveness.answers !== false || answered >= proof - inexact;
  return { ...heard, answers, answered, unanswered: 0 };
}

const endless = { silence: Number.POSITIVE_INFINITY, well: 0, forced: null, answered: null } as const;

/** It answers that it serves nothing: what else comes from it shows no more than that its tunnel is up. */
export function recordClosed(liveness: Liveness): Liveness {
  const failures = liveness.failures + (liveness.state === 'silent' ? 0 : 1);
  return { ...liveness, ...endless, state: 'silent', heard: true, answers: false, failures };
}

/** The probe interval changes: with the longer one, a connector was silent for long without a probe. */
export function resetSilence(liveness: Liveness): Liveness {
  return liveness.state === 'silent' ? liveness : { ...liveness, silence: 0 };
}

/**
 * True when what is known of one still counts after a time without probes. Without a session its first answer needs a handshake, and may
 * take longer than a dead one is waited for.
 */
export function isLasting({ state, answers }: Liveness, hasSession: boolean): boolean {
  return state === 'trusted' && answers === true && hasSession;
}

/** A handshake with it was forced, which starts the seconds for its answer if another connector can take over. */
export function recordHandshake(liveness: Liveness, circumstances: ConnectorUse): Liveness {
  return needsHandshake(liveness, circumstances) ? { ...liveness, forced: 0 } : liveness;
}

/** True of one of which it is still to be learned whether it answers. */
export function isNew({ answers, state }: Liveness): boolean {
  return answers === null && state !== 'silent';
}

/** What a connector is used for, and whether another can take over. */
export interface ConnectorUse {
  /** It carries packets, for want of a better one perhaps. */
  readonly inService: boolean;
  /** Another connector is heard, which shows that this host is not cut off itself. */
  readonly hasOther: boolean;
}

/** How a connector is looked at. */
export interface ProbeObservation extends ConnectorUse {
  /** Since the last look. */
  readonly seconds: number;
  /** Seconds between two questions. */
  readonly every: number;
}

/**
 * Time spent looking went by. Of a pause that took longer than it was meant to, no more than `every` counts: the silence of one
 * that was not probed proves nothing.
 */
export function recordTime(before: Liveness, { seconds, every, inService, hasOther }: ProbeObservation): Liveness {
  const spent = Math.min(seconds, every);
  const silence = before.silence + spent;
  const forced = before.forced === null || !hasOther ? null : before.forced + spent;
  const { state, answers } = before;
  // A firewall does not drop a handshake.
  const isMissed = inService && isNew(before) && forced !== null && forced >= renewAfter - inexact;
  if (isMissed || silence >= (answers ? patience * every : patienceWithoutProbes) - inexact) {
    const failures = before.failures + (state === 'silent' ? 0 : 1);
    // When it comes back a firewall may have come with it.
    return { ...before, ...endless, state: 'silent', answers: false, failures };
  }
  const unanswered = before.unanswered + spent;
  const answered = unanswered >= patience * every - inexact ? null : before.answered;
  const well = before.heard ? before.well + spent : 0;
  const failures = well > memory ? 0 : before.failures;
  const changed = { silence, answered, unanswered, forced, well, failures };
  return { ...before, ...changed, state: nextState({ ...before, well }, inService) };
}

function nextState({ state, well, answers, failures }: Liveness, inService: boolean): Liveness['state'] {
  // Until one that is only heard is heard, nothing can be said of it.
  const signs = answers ? firstSigns : patienceWithoutProbes + firstSigns;
  // Where all connectors are silent at once, the one in service keeps its routes when they come back.
  if (state === 'silent') return well < signs ? 'silent' : inService ? 'trusted' : 'back';
  const trusted = Math.min(longestProbation, probation * 2 ** Math.max(0, failures - 1));
  // A connector that took over keeps serving when another one comes back.
  return state === 'back' && (inService || well >= trusted) ? 'trusted' : state;
}

/**
 * True when a handshake is to be forced, to distinguish a new connector that does not answer from a dead one. Its session, where it has
 * one, is lost with that: only of one in service, that another can stand in for, is it worth it.
 */
export function needsHandshake(liveness: Liveness, { inService, hasOther }: ConnectorUse): boolean {
  return (
    inService && hasOther && isNew(liveness) && liveness.silence >= renewAfter - inexact && liveness.forced === null
  );
}

/** True when a question went unanswered for so long that the counters are worth a look: something else may have come. */
export function isUncertain(liveness: Liveness, { every }: Pick<ProbeObservation, 'every'>): boolean {
  const { silence, answers } = liveness;
  return isNew(liveness) || silence > (answers ? 1.5 * every : every);
}
