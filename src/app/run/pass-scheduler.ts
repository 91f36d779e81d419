import { CpnError } from '../../core/errors/index.ts';
import { backoffDelay } from '../../core/util/backoff.ts';
import { CoalescingTimer, withJitter } from './coalescing.ts';

/** Milliseconds in which events become one pass. Other interfaces' events are less urgent. */
const gatherMs = 100;
const gatherOthersMs = 2_000;
/** The least milliseconds between a pass and one that a host event starts. */
const restMs = 500;

export interface NextPass {
  /** Why the pass failed, at least in part; null for success. */
  readonly error: unknown;
  /** Milliseconds after which a postponed repair is due; null without one. */
  readonly requeueAfter: number | null;
}

/** Decides when the next pass over a network starts. */
export class PassScheduler {
  readonly #interval: number;
  readonly #timer = new CoalescingTimer();
  #failures = 0;
  #isTerminal = false;
  /** When the last pass ended, in milliseconds of performance.now(). */
  #endedAt = Number.NEGATIVE_INFINITY;

  /** @param interval seconds between two passes without another trigger, varied by up to a fifth */
  constructor(interval: number) {
    this.#interval = interval;
  }

  /** Resolves when a pass is due, or when `signal` aborts. */
  async next(signal: AbortSignal): Promise<void> {
    await this.#timer.next(signal);
    if (!signal.aborted) this.trigger(withJitter(this.#interval) * 1000);
  }

  trigger(inMs = 0): void {
    this.#timer.schedule(inMs);
  }

  triggerByEvent(isUrgent: boolean): void {
    const rested = this.#endedAt + restMs - performance.now();
    this.trigger(Math.max(rested, isUrgent ? gatherMs : gatherOthersMs));
  }

  /** Called when the state on disk changed, which may fix an error that no retry can. */
  triggerByStateChange(): void {
    if (this.#isTerminal) this.#retry();
  }

  /** Schedules a retry with backoff, the postponed repair, or nothing before the interval. */
  schedule({ error, requeueAfter }: NextPass): void {
    this.#endedAt = performance.now();
    this.#isTerminal = error instanceof CpnError && !error.isRetryable;
    if (error !== null) {
      this.#failures += 1;
      if (!this.#isTerminal) this.#retry();
    } else if (requeueAfter === null) this.#failures = 0;
    if (requeueAfter !== null) this.trigger(requeueAfter);
  }

  #retry(): void {
    const backoff = { baseMs: 1_000, capMs: this.#interval * 1000 };
    this.trigger(gatherMs + backoffDelay(this.#failures, backoff, Math.random()));
  }
}
