import { clampInstants } from '../store/clamp-instants.ts';
import type { Context } from './context.ts';

/** Milliseconds by which a clock may run slow between two readings. */
const toleranceMs = 2_000;

/** Finds that the clock was set back. */
export interface ClockWatch {
  /** Corrects what is stored if the clock was set back since the last call; the first call does so in any case. */
  check(): Promise<void>;
}

/**
 * Compares the clock of the database, and of this process where it is later, with the steady clock. What was stored by a clock that was ahead
 * would else be newer than all that follows, for as long as it was ahead.
 */
export function createClockWatch({ db, readTime, now, steadyNow }: Context): ClockWatch {
  /** How far the clock was ahead of the steady one; null before the first reading. */
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
