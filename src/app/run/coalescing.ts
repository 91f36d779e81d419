/** A timer that combines all calls of {@link schedule} before it expires into one: the earliest. */
export class CoalescingTimer {
  #isExpired = false;
  /** In milliseconds of performance.now(). */
  #due = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #wake: () => void = () => {};

  schedule(inMs = 0): void {
    const due = performance.now() + inMs;
    if (this.#isExpired || due >= this.#due) return;
    this.#due = due;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isExpired = true;
      this.#wake();
    }, inMs);
  }

  /**
   * Resolves when the timer expires, has expired since the last call, or `signal` aborts.
   * Afterwards nothing is scheduled.
   */
  async next(signal: AbortSignal): Promise<void> {
    if (!this.#isExpired && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      const onAbort = () => resolve();
      signal.addEventListener('abort', onAbort);
      await promise;
      signal.removeEventListener('abort', onAbort);
    }
    clearTimeout(this.#timer);
    this.#isExpired = false;
    this.#due = Number.POSITIVE_INFINITY;
  }
}

/** Varies `seconds` by up to a fifth, so that hosts do not continue in step. */
export function withJitter(seconds: number): number {
  return seconds * (0.8 + 0.4 * Math.random());
}

/** Runs work one at a time. Requests that come while it runs lead to one more run. */
export class CoalescedWork {
  readonly #work: () => Promise<void>;
  #isDue = false;
  #isRunning = false;

  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  request(): void {
    this.#isDue = true;
    if (!this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      while (this.#isDue) {
        this.#isDue = false;
        await this.#work();
      }
    } finally {
      this.#isRunning = false;
    }
  }
}
