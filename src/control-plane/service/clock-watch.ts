import { clampInstants } from '../store/clamp-instants.ts';
import type { Context } from './context.ts';

/** Milliseconds by which a clock may run slow between two readings. */
const toleranceMs = 2_000;

/** Detects that the clock was set back. */
export interface ClockWatch {
  /** Corrects stored instants at the first call, and if the clock was set back since the last. */
  check(): Promise<void>;
}

/**
 * Compares the later of the database's clock and this process's clock with the steady clock.
 * Without a correction, rows stored while a clock was ahead would stay newer than all later rows
 * for as long.
 */
export function createClockWatch({ db, readTime, now, steadyNow }: Context): ClockWatch {
  /** How far the clock was ahead of the steady clock; null before the first reading. */
  let ahead: number | null = null;
  return {
    async check() {
      const at = new Date(Math.max((await readTime(db)).getTime(), now().getTime()));
      const isBack = ahead === null || at.getTime() - steadyNow() < ahead - toleranceMs;
      if (isBack) await clampInstants(db, at);
      ahead = at.getTime() - steadyNow();
    },
  };
}
