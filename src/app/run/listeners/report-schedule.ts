import type { ProbeResult } from '../../../contract/health.ts';
import { Refused, Unreachable } from '../../../core/errors/index.ts';
import {
  emptyReport,
  type HostReport,
  type Reachability,
  type ReportPart,
} from '../../../core/health/report/compose-report.ts';
import { compareReports, mergeProbes, mergeReport } from '../../../core/health/report/report-changes.ts';
import { type Backoff, backoffDelay, pauseFor, type RateLimit } from '../../../core/util/backoff.ts';

/**
 * Seconds between reports of figures, and of a host with nothing to report. A reply states how
 * others reach this host; they may report that only after its first, complete report.
 */
export interface Pauses {
  readonly figures: number;
  readonly idle: number;
  readonly idleAfterComplete: number;
}

/** On the connection that a long poll left (1 KB a report), and on a new one (TLS: 5 to 7 KB). */
export const onKept: Pauses = { figures: 60, idle: 90, idleAfterComplete: 30 };
export const onNew: Pauses = { figures: 180, idle: 180, idleAfterComplete: 180 };
/**
 * Seconds until a further report, once after each complete one, if a peer is reached and the reply
 * had no witness: that peer may have reported only after it.
 */
const secondReply = 20;
/** The control plane accepts 30 at once, and one more every 2 s. */
const pace: RateLimit = { most: 10, withinMs: 20_000 };
const backoff: Backoff = { baseMs: 2_000, capMs: 120_000 };
/** Seconds after a failed report, and after a refused one. */
const restAfterFailure = 1;
const restAfterRefusal = 120;

export interface ReportContext {
  /** Seconds of the monotonic clock, like all instants here. */
  readonly now: number;
  readonly pauses: Pauses;
  /** True if the newest map cannot be read: the control plane is overloaded, or down. */
  readonly isAway: boolean;
  /** True if rules refused connections that the service does not have. */
  readonly hasRefused?: boolean;
  readonly isListed: (name: number | string) => boolean;
}

/** Decides which part of an observation to report now, given what the service has. */
export class ReportSchedule {
  /** What the service has; null if unknown. */
  #reported: HostReport | null = null;
  /** Consecutive. */
  #failures = 0;
  #restUntil = 0;
  #figuresAt = 0;
  /** The last accepted report. */
  #wasComplete = false;
  /** True if a reply had a witness, or came late enough for one. */
  #isReplySettled = false;
  /** In milliseconds. */
  #sent: readonly number[] = [];

  /** Ends the pause after a failure: the control plane may be reachable again. */
  reset(): void {
    this.#failures = 0;
    this.#restUntil = 0;
  }

  /** Forgets what the service has: the next report is complete. */
  forget(): void {
    this.#reported = null;
  }

  /** Pauses: a refused request is not granted soon. */
  restAfterRefusal(now: number): void {
    this.#restUntil = now + restAfterRefusal;
  }

  /** What to send now, or null. A transition waits for nothing; figures go along with it. */
  findDue(next: HostReport, { now, pauses, isAway, hasRefused = false, isListed }: ReportContext): ReportPart | null {
    if (now < this.#restUntil || pauseFor(this.#sent, now * 1000, pace) > 0) return null;
    if (this.#reported === null) return { ...next, complete: true };
    const { transitions, figures } = compareReports(this.#reported, next, isListed);
    const mayHaveFigures = now - this.#figuresAt >= (transitions === null ? pauses : onKept).figures;
    if (transitions?.complete || (transitions !== null && !mayHaveFigures)) return transitions;
    if (mayHaveFigures && figures.length > 0) {
      return { ...transitions, paths: [...(transitions?.paths ?? []), ...figures] };
    }
    const isEarly = !this.#isReplySettled && reachesAny(next);
    const idle = isEarly ? secondReply : this.#wasComplete ? pauses.idleAfterComplete : pauses.idle;
    const isIdle = now * 1000 - (this.#sent.at(-1) ?? 0) >= idle * 1000;
    return transitions ?? ((isIdle && !isAway) || hasRefused ? {} : null);
  }

  noteSent(now: number): void {
    this.#sent = [...this.#sent, now * 1000].slice(-pace.most);
  }

  /** Records that the service accepted `part` of `next`, which was sent at `now`. */
  noteTaken(part: ReportPart, next: HostReport, reply: Reachability | null, now: number): void {
    this.#failures = 0;
    this.#wasComplete = part.complete === true;
    const isSecond = Object.keys(part).length === 0 && reachesAny(next);
    const isWitnessed = reply !== null && reply.witnesses > 0;
    this.#isReplySettled = isWitnessed || (!this.#wasComplete && (this.#isReplySettled || isSecond));
    this.#reported = mergeReport(this.#reported ?? emptyReport, part, next);
    if (part.complete || now - this.#figuresAt >= onKept.figures) this.#figuresAt = now;
  }

  /** Records probe results that the service has: a peer that answers again is a transition. */
  noteProbed(probes: readonly ProbeResult[]): void {
    if (this.#reported !== null) this.#reported = mergeProbes(this.#reported, probes);
  }

  /** Returns the failures in a row. The next report is complete: this one may not have arrived. */
  noteFailure(error: unknown, now: number): number {
    this.forget();
    this.#failures += 1;
    const requested = error instanceof Unreachable ? (error.retryAfterMs ?? 0) : 0;
    const least = error instanceof Refused ? restAfterRefusal : restAfterFailure;
    this.#restUntil = now + least + (requested + backoffDelay(this.#failures, backoff, Math.random())) / 1000;
    return this.#failures;
  }
}

function reachesAny({ paths }: HostReport): boolean {
  return paths.some(({ path }) => path === 'direct');
}
