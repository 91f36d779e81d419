const shortest = 1000;
const longest = 10_000;

/** Milliseconds until the next attempt after consecutive failures. `random` is from 0 to 1. */
export function backoff(failures: number, random: number): number {
  const most = Math.min(longest, shortest * 2 ** Math.max(0, failures - 1));
  return Math.round(most * (0.5 + random / 2));
}
