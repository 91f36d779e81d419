/** Limits of the delay between attempts: at most `baseMs` at first, and never above `capMs`. */
export interface Backoff {
  readonly baseMs: number;
  readonly capMs: number;
}

/**
 * The delay after attempt `attempt` (from 1) in milliseconds: random up to a ceiling that doubles
 * with each attempt ("full jitter"), so that hosts do not retry together. `random` is in [0, 1).
 */
export function backoffDelay(attempt: number, { baseMs, capMs }: Backoff, random: number): number {
  // From 2^30 on, every ceiling is the cap. Without the bound, a long outage ends in Infinity × 0.
  const doublings = Math.min(Math.max(attempt - 1, 0), 30);
  return Math.floor(random * Math.min(capMs, baseMs * 2 ** doublings));
}

/** Parses `Retry-After` (RFC 9110, 10.2.3), seconds or a date, to 0 … `maxMs` after `nowMs`. */
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
/** The only format that servers may still generate. `Date.parse` alone reads "-5" as a year. */
const datePattern = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** The maximum number of events within a time. Further events are delayed. */
export interface RateLimit {
  readonly most: number;
  readonly withinMs: number;
}

/** Milliseconds until the next event may occur after those at `times`, oldest first. */
export function pauseFor(times: readonly number[], now: number, { most, withinMs }: RateLimit): number {
  const oldest = times.at(-most);
  return oldest === undefined ? 0 : Math.max(0, oldest + withinMs - now);
}
