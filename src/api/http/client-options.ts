import { setTimeout as delay } from 'node:timers/promises';
import type { Resolved } from '../../core/names/resolved-names.ts';
import type { Remedies } from './error-reply.ts';

interface Retry {
  /** The number of the failed attempt, from 1. */
  readonly attempt: number;
  readonly delayMs: number;
  /** Text for users. */
  readonly problem: string;
}

/** The behaviour of a client. The defaults suit a user at a terminal. */
export interface ClientOptions {
  /** The deadline of one call, including all attempts, pauses and the whole body. */
  readonly deadlineMs?: number;
  /** The maximum number of attempts per call. */
  readonly attempts?: number;
  /** The maximum size of a reply's body, after inflating. */
  readonly maxBodyBytes?: number;
  /** Called before each pause. */
  readonly onRetry?: (retry: Retry) => void;
  /** Aborts all calls, which then fail with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Hints for statuses that have none in the call. */
  readonly remedies?: Remedies;
  /**
   * `leave`: a successful call leaves its new connection to the next call. `keep`: it reuses the
   * connection that was left, and leaves it again. By default, it closes the connection.
   */
  readonly connection?: 'leave' | 'keep';
  /** The addresses of names, for when the resolver fails. */
  readonly resolved?: Resolved;
  readonly clock?: Clock;
  /** In [0, 1). */
  readonly random?: () => number;
}

interface Clock {
  /** Milliseconds of a monotonic clock. */
  monotonic(): number;
  /** Milliseconds since 1970. */
  wall(): number;
  sleep(ms: number, signal: AbortSignal): Promise<unknown>;
}

const systemClock: Clock = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
  sleep: (ms, signal) => delay(ms, undefined, { signal }),
};

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
