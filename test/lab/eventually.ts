import { setTimeout as sleep } from 'node:timers/promises';

/** How patient {@link eventually} is. */
export interface Patience {
  /** 10,000 unless told. */
  readonly timeoutMs?: number;
  /** 50 unless told. */
  readonly everyMs?: number;
}

/**
 * Repeats `probe` until it returns something else than false, null or undefined, and returns that.
 * Fails after the time limit with the last error that it threw, or with `what` it waited for.
 */
export async function eventually<T>(
  what: string,
  probe: () => T | Promise<T>,
  { timeoutMs = 10_000, everyMs = 50 }: Patience = {},
): Promise<Exclude<T, false | null | undefined>> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    let failure: unknown;
    try {
      const value = await probe();
      if (value !== false && value !== null && value !== undefined) {
        return value as Exclude<T, false | null | undefined>;
      }
    } catch (error) {
      failure = error;
    }
    if (performance.now() > deadline) throw new Error(`${what}: not within ${timeoutMs} ms`, { cause: failure });
    await sleep(everyMs);
  }
}
