/**
 * Liveness by probes through the tunnel. Times are seconds of a clock that stops during sleep.
 *
 * @module
 */

export interface Liveness {
  /** `back` is a connector that was silent and responds again. It is trusted after a probation. */
  readonly state: 'trusted' | 'silent' | 'back';
  /** Observed seconds without a packet; infinite for a silent connector until it responds. */
  readonly silence: number;
  /** True if any packet came from it since the first probe. */
  readonly heard: boolean;
  /** True if it answers probes, which a firewall may always prevent. Null until determined. */
  readonly answers: boolean | null;
  /** Seconds from the first to the last of its consecutive answers; null without an answer. */
  readonly answered: number | null;
  /** Seconds since its last answer, or since the first probe. */
  readonly unanswered: number;
  /** Seconds since a handshake was forced to test it. Null without one, or after a packet. */
  readonly forced: number | null;
  /** Seconds of unbroken health; for a new connector, seconds since its first packet. */
  readonly well: number;
  /** How often it recently became silent. */
  readonly failures: number;
}

/**
 * Probe intervals without an answer after which a connector that used to answer is dead. TCP sends
 * again 1.5 s and then 3.1 s after the death of a path: hosts leave the connector in service before
 * the first of these.
 */
const patience = 2.5;
/**
 * Seconds of silence after which a connector that answers no probes is dead: peers send keepalives
 * after 10 s, and retry handshakes after 5 s (KEEPALIVE_TIMEOUT, REKEY_TIMEOUT in messages.h).
 */
const patienceWithoutProbes = 15;
/** Seconds for which a mute connector must answer: a reloading firewall lets a few probes pass. */
const proofOfMute = 10;
/** The same for a silent connector: two answers of a standby, which must be healthy for longer. */
const proofOfSilent = 2;
/** Seconds for a (perhaps distant) new connector to answer before another handshake starts. */
export const renewAfter = 1;
/** Seconds by which a timer may fire early. */
export const inexact = 0.1;
/** Seconds of health before a silent connector is trusted. They double with each failure. */
const probation = 60;
const longestProbation = 960;
/** Seconds of health after which a connector is preferred to a silent one. */
const firstSigns = 5;
/**
 * The same for the relay that the map names, after its first failure. Until this host returns to
 * it, the hosts that use it cannot reach this one.
 */
const firstSignsOfRelay = 2;
/** Seconds of health after which failures are forgotten. */
const memory = 3600;

export function unknownLiveness(state: Liveness['state']): Liveness {
  const failures = state === 'trusted' ? 0 : 1;
  // For a connector that is silent already, only new packets count.
  const known = state === 'silent' ? { heard: true, answers: false } : { heard: false, answers: null };
  return { state, silence: 0, ...known, answered: null, unanswered: 0, forced: null, well: 0, failures };
}

/** Records an answer to a probe, or other traffic from the connector. */
export function recordAnswer(liveness: Liveness, by: 'answer' | 'traffic'): Liveness {
  // Probes from before its first packet may be lost, and later answers may be in transit. Neither
  // indicates a firewall.
  const isMute = liveness.well >= renewAfter - inexact ? false : null;
  const heard = { ...liveness, silence: 0, heard: true, forced: null };
  if (by === 'traffic') return { ...heard, answers: liveness.answers ?? isMute };
  const answered = liveness.answered === null ? 0 : liveness.answered + liveness.unanswered;
  const proof = liveness.state === 'silent' ? proofOfSilent : proofOfMute;
  const answers = liveness.answers !== false || answered >= proof - inexact;
  return { ...heard, answers, answered, unanswered: 0 };
}

const endless = { silence: Number.POSITIVE_INFINITY, well: 0, forced: null, answered: null } as const;

/** Records that it serves nothing: other packets from it only show that its tunnel is up. */
export function recordClosed(liveness: Liveness): Liveness {
  const failures = liveness.failures + (liveness.state === 'silent' ? 0 : 1);
  return { ...liveness, ...endless, state: 'silent', heard: true, answers: false, failures };
}

/** For a new probe interval: with a longer interval, silence between probes was normal. */
export function resetSilence(liveness: Liveness): Liveness {
  return liveness.state === 'silent' ? liveness : { ...liveness, silence: 0 };
}

/** True if it outlasts a pause in probes: without a session, a first answer may be too late. */
export function isLasting({ state, answers }: Liveness, hasSession: boolean): boolean {
  return state === 'trusted' && answers === true && hasSession;
}

/** Starts the timeout of a forced handshake's answer if another connector can take over. */
export function recordHandshake(liveness: Liveness, circumstances: ConnectorUse): Liveness {
  return needsHandshake(liveness, circumstances) ? { ...liveness, forced: 0 } : liveness;
}

/** True if it is not determined yet whether the connector answers probes. */
export function isNew({ answers, state }: Liveness): boolean {
  return answers === null && state !== 'silent';
}

/** What a connector is used for, and whether another can take over. */
export interface ConnectorUse {
  /** True if the connector carries packets, perhaps because no better one exists. */
  readonly inService: boolean;
  /** True if another connector responds, which shows that this host itself is not cut off. */
  readonly hasOther: boolean;
}

/** One observation of a connector. */
export interface ProbeObservation extends ConnectorUse {
  /** Seconds since the last observation. */
  readonly seconds: number;
  /** Seconds between two probes. */
  readonly every: number;
  /** True if the map names it as the relay, and this host needs one. */
  readonly isNamedRelay: boolean;
  /** True if it is in service only because the map names it: it carries no route. */
  readonly isOnlyRelay: boolean;
}

/** At most `every` counts: in a longer pause, silence without probes proves nothing. */
export function recordTime(before: Liveness, observation: ProbeObservation): Liveness {
  const { seconds, every, inService, hasOther } = observation;
  const spent = Math.min(seconds, every);
  const silence = before.silence + spent;
  const forced = before.forced === null || !hasOther ? null : before.forced + spent;
  const { state, answers } = before;
  // A firewall does not drop a handshake.
  const isMissed = inService && isNew(before) && forced !== null && forced >= renewAfter - inexact;
  if (isMissed || silence >= (answers ? patience * every : patienceWithoutProbes) - inexact) {
    const failures = before.failures + (state === 'silent' ? 0 : 1);
    // When it returns, a firewall may have been added.
    return { ...before, ...endless, state: 'silent', answers: false, failures };
  }
  const unanswered = before.unanswered + spent;
  const answered = unanswered >= patience * every - inexact ? null : before.answered;
  const well = before.heard ? before.well + spent : 0;
  const failures = well > memory ? 0 : before.failures;
  const changed = { silence, answered, unanswered, forced, well, failures };
  return { ...before, ...changed, state: nextState({ ...before, well }, observation) };
}

function nextState(
  { state, well, answers, failures }: Liveness,
  { inService, isNamedRelay, isOnlyRelay }: ProbeObservation,
): Liveness['state'] {
  // The named relay is in service again before it is trusted with routes.
  const tookOver = inService && !isOnlyRelay;
  const least = isNamedRelay ? Math.min(firstSigns, firstSignsOfRelay * 2 ** (failures - 1)) : firstSigns;
  // Until a connector that answers no probes sends a packet, its state cannot be determined.
  const signs = answers ? least : patienceWithoutProbes + firstSigns;
  // If all connectors are silent at once, the one in service keeps its routes when they return.
  if (state === 'silent') return well < signs ? 'silent' : tookOver ? 'trusted' : 'back';
  const trusted = Math.min(longestProbation, probation * 2 ** Math.max(0, failures - 1));
  // A connector that took over keeps serving when another one returns.
  return state === 'back' && (tookOver || well >= trusted) ? 'trusted' : state;
}

/**
 * True if a handshake must be forced, to distinguish a mute new connector from a dead one. This
 * loses the session, so only a connector in service that another can replace is tested.
 */
export function needsHandshake(liveness: Liveness, { inService, hasOther }: ConnectorUse): boolean {
  return (
    inService && hasOther && isNew(liveness) && liveness.silence >= renewAfter - inexact && liveness.forced === null
  );
}

/**
 * True if a probe is unanswered so long that the counters must be read for other packets. Probes
 * are then twice as frequent, so that at least three are lost before a connector is dead.
 */
export function isUncertain(liveness: Liveness, { every }: Pick<ProbeObservation, 'every'>): boolean {
  const { silence, answers } = liveness;
  return isNew(liveness) || (answers ? silence >= 1.5 * every - inexact : silence > every);
}
