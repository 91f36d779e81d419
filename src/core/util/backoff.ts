/** How long a caller waits between attempts: the first wait is at most `baseMs`, and none is above `capMs`. */
export interface Backoff {
  readonly baseMs: number;
  readonly capMs: number;
}

/**
 * The wait after attempt number `attempt` (from 1): anywhere between nothing and a ceiling that doubles with each attempt
 * ("full jitter"), so that a rack of hosts that failed together does not come back together. `random` is in [0, 1).
 */
export function backoffDelay(attempt: number, { baseMs, capMs }: Backoff, random: number): number {
  // Past 2^30 every ceiling is the cap; without the bound a long outage ends in Infinity × 0.
  const doublings = Math.min(Math.max(attempt - 1, 0), 30);
  return Math.floor(random * Math.min(capMs, baseMs * 2 ** doublings));
}

/**
 * Reads `Retry-After` (RFC 9110, 10.2.3), in seconds or as an HTTP date, as milliseconds from `nowMs` on: never negative and
 * never above `maxMs`, whatever the server asked. Null when there is no such header or it says neither.
 */
export function readRetryAfter(header: string | null, nowMs: number, maxMs: number): number | null {
  const text = header?.trim() ?? '';
  const asked = secondsPattern.test(text)
    ? Number(text) * 1000
    : datePattern.test(text)
      ? Date.parse(text) - nowMs
      : Number.NaN;
  return Number.isNaN(asked) ? null : Math.min(Math.max(asked, 0), maxMs);
}

const secondsPattern = /^\d+$/;
/** The one form that a server may still generate; `Date.parse` alone also takes "-5" for a year. */
const datePattern = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** How many of something may come within a time; more are put off. */
export interface RateLimit {
  readonly most: number;
  readonly withinMs: number;
}

/** Milliseconds to wait before the next one, when the last ones were at `times` on the clock of `now`, the oldest first. */
export function pauseFor(times: readonly number[], now: number, { most, withinMs }: RateLimit): number {
  const oldest = times.at(-most);
  return oldest === undefined ? 0 : Math.max(0, oldest + withinMs - now);
}
