import type { FastifyRateLimitStore } from '@fastify/rate-limit';
import { createBoundedCache } from '../bounded-cache.ts';

type Callback = Parameters<FastifyRateLimitStore['incr']>[1];

interface Window {
  readonly startedAt: number;
  count: number;
}

/** The maximum number of callers with a count. */
const maxCallers = 5_000;

/**
 * Windows like @fastify/rate-limit's, but by a monotonic clock (`now`, milliseconds). By its own
 * clock, a window would last very long after the clock was ahead.
 */
export function createRateWindows(now: () => number): new () => FastifyRateLimitStore {
  return class extends RateWindows {
    constructor() {
      super(now);
    }
  };
}

class RateWindows implements FastifyRateLimitStore {
  readonly #windows = createBoundedCache<string, Window>(maxCallers);
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  incr(key: string, callback: Callback, timeWindow: number): void {
    const window = this.#openWindow(key, timeWindow) ?? { startedAt: this.#now(), count: 0 };
    window.count += 1;
    this.#windows.set(key, window);
    this.#answer(window, callback, timeWindow);
  }

  read(key: string, callback: Callback, timeWindow: number): void {
    const window = this.#openWindow(key, timeWindow);
    if (window === undefined) callback(null, { current: 0, ttl: 0 });
    else this.#answer(window, callback, timeWindow);
  }

  child(): RateWindows {
    return new RateWindows(this.#now);
  }

  #openWindow(key: string, timeWindow: number): Window | undefined {
    const window = this.#windows.get(key);
    return window !== undefined && this.#now() - window.startedAt < timeWindow ? window : undefined;
  }

  #answer({ startedAt, count }: Window, callback: Callback, timeWindow: number): void {
    callback(null, { current: count, ttl: Math.ceil(timeWindow - (this.#now() - startedAt)) });
  }
}
