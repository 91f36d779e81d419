/** The share of its lifetime by which a key may live longer, so that hosts do not all change theirs at once. */
const mostJitter = 0.1;

/**
 * True when a key made at `since` (ISO 8601) is due to be changed.
 *
 * @param every seconds; null for never
 * @param jitter from 0 to 1, the same for one host while it runs
 */
export function isDue(since: string, every: number | null, now: Date, jitter: number): boolean {
  if (every === null) return false;
  return now.getTime() - Date.parse(since) >= every * 1000 * (1 + mostJitter * jitter);
}
