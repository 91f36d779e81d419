import { setTimeout as delay } from 'node:timers/promises';
import type { Resolved } from '../../core/names/resolved-names.ts';
import type { Remedies } from './error-reply.ts';

/** An attempt brought no answer, and another one follows. */
interface Retry {
  /** The attempt that failed, from 1. */
  readonly attempt: number;
  readonly delayMs: number;
  /** In words for a person. */
  readonly problem: string;
}

/** How a client behaves; each has a default that suits a person at a terminal. */
export interface ClientOptions {
  /** For one call with all its attempts and waits, to the last byte of the body. */
  readonly deadlineMs?: number;
  /** Attempts of one call at most. */
  readonly attempts?: number;
  /** Of a reply's body, after inflating. */
  readonly maxBodyBytes?: number;
  /** Called before each wait. */
  readonly onRetry?: (retry: Retry) => void;
  /** Ends every call under way; it then fails with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Hints for statuses without one in the call. */
  readonly remedies?: Remedies;
  /**
   * `leave`: a call that succeeds leaves its connection, a new one, to the next call. `keep`: it uses the one that was left, and leaves
   * it again. By default it closes it.
   */
  readonly connection?: 'leave' | 'keep';
  /** The addresses of names for when the resolver fails. */
  readonly resolved?: Resolved;
  readonly clock?: Clock;
  /** In [0, 1). */
  readonly random?: () => number;
}

interface Clock {
  /** Milliseconds that only ever grow, whatever is done to the wall clock. */
  monotonic(): number;
  /** Milliseconds since the epoch. */
  wall(): number;
  sleep(ms: number, signal: AbortSignal): Promise<unknown>;
}

const systemClock: Clock = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
  sleep: (ms, signal) => delay(ms, undefined, { signal }),
};

/** The options as given, with the defaults for what was left out. */
export function withDefaults(options: ClientOptions) {
  return {
    deadlineMs: 30_000,
    attempts: 7,
    maxBodyBytes: 16 * 1024 * 1024,
    onRetry: () => {},
    signal: new AbortController().signal,
    remedies: {},
    connection: null,
    resolved: {},
    clock: systemClock,
    random: Math.random,
    ...options,
  };
}
