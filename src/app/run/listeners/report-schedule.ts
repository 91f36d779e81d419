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
 * Seconds between two reports of figures, and of a host that has nothing to report. The reply
 * states how others reach the host. Others may report that only after the first report, which is
 * complete.
 */
export interface Pauses {
  readonly figures: number;
  readonly idle: number;
  readonly idleAfterComplete: number;
}

/**
 * Those on the connection that a long poll leaves, and on a new one. Over TLS a new one takes 5 to
 * 7 KB, a report without it 1 KB.
 */
export const onKept: Pauses = { figures: 60, idle: 90, idleAfterComplete: 30 };
export const onNew: Pauses = { figures: 180, idle: 180, idleAfterComplete: 180 };
/**
 * Seconds after which a host that reaches another one reports again, on any connection, where the
 * reply had no witness: the other one may have reported only after it. Once after each complete
 * report.
 */
const secondReply = 20;
/** The control plane takes 30 at once, and one more every 2 s. */
const pace: RateLimit = { most: 10, withinMs: 20_000 };
const backoff: Backoff = { baseMs: 2_000, capMs: 120_000 };
/** Seconds after a report that failed, and after one that the service refused. */
const restAfterFailure = 1;
const restAfterRefusal = 120;

/** What a report may go by. */
export interface ReportContext {
  /** Seconds of the monotonic clock, as all instants here. */
  readonly now: number;
  readonly pauses: Pauses;
  /** Whether the newest map cannot be read: the control plane is overloaded, or away. */
  readonly isAway: boolean;
  /** Whether a peer or route is in the map. */
  readonly isListed: (name: number | string) => boolean;
}

/** Decides what of an observation is to be reported now, by what the service has of it. */
export class ReportSchedule {
  /** What the service has; null where that is not known. */
  #reported: HostReport | null = null;
  /** In a row. */
  #failures = 0;
  #restUntil = 0;
  #figuresAt = 0;
  /** The last report that the service took. */
  #wasComplete = false;
  /** Whether a reply had a witness, or came late enough for one. */
  #isReplySettled = false;
  /** When the last reports were sent, in milliseconds. */
  #sent: readonly number[] = [];

  /** The pause after a failure ends: the control plane may be in reach again. */
  reset(): void {
    this.#failures = 0;
    this.#restUntil = 0;
  }

  /** What the service has is not known: the next report is complete. */
  forget(): void {
    this.#reported = null;
  }

  /** Nothing is due before a refused request could be granted. */
  restAfterRefusal(now: number): void {
    this.#restUntil = now + restAfterRefusal;
  }

  /**
   * What is to be sent now; null for nothing. Figures go along with a transition, which waits for
   * nothing.
   */
  findDue(next: HostReport, { now, pauses, isAway, isListed }: ReportContext): ReportPart | null {
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
    return transitions ?? (isIdle && !isAway ? {} : null);
  }

  noteSent(now: number): void {
    this.#sent = [...this.#sent, now * 1000].slice(-pace.most);
  }

  /** Notes that the service took `part` of `next`, which was sent at `now`. */
  noteTaken(part: ReportPart, next: HostReport, reply: Reachability | null, now: number): void {
    this.#failures = 0;
    this.#wasComplete = part.complete === true;
    const isSecond = Object.keys(part).length === 0 && reachesAny(next);
    const isWitnessed = reply !== null && reply.witnesses > 0;
    this.#isReplySettled = isWitnessed || (!this.#wasComplete && (this.#isReplySettled || isSecond));
    this.#reported = mergeReport(this.#reported ?? emptyReport, part, next);
    if (part.complete || now - this.#figuresAt >= onKept.figures) this.#figuresAt = now;
  }

  /**
   * Notes what the service has of peers that this host probed: a peer that answers again is then a
   * transition.
   */
  noteProbed(probes: readonly ProbeResult[]): void {
    if (this.#reported !== null) this.#reported = mergeProbes(this.#reported, probes);
  }

  /**
   * Notes a failure, and returns how many there were in a row. Whether the service has the report
   * is not known: the next one is complete.
   */
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
