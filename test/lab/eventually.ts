import { setTimeout as sleep } from 'node:timers/promises';

/** The time limits of {@link eventually}. */
export interface Patience {
  /** 60,000 by default. */
  readonly timeoutMs?: number;
  /** Between two probes; without it, from 50 to 400: most probes start processes. */
  readonly everyMs?: number;
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 400;

/**
 * Repeats `probe` until it returns something else than false, null or undefined, and returns that.
 * Fails after the time limit with the last error that it threw, or with `what` it waited for.
 */
export async function eventually<T>(
  what: string,
  probe: () => T | Promise<T>,
  { timeoutMs = 60_000, everyMs }: Patience = {},
): Promise<Exclude<T, false | null | undefined>> {
  const deadline = performance.now() + timeoutMs;
  let pauseMs = everyMs ?? FIRST_PAUSE_MS;
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
    await sleep(pauseMs);
    pauseMs = everyMs ?? Math.min(pauseMs * 1.5, LONGEST_PAUSE_MS);
  }
}
