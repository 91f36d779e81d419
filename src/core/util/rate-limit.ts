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
