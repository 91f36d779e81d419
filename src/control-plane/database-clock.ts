import type { Logger } from 'pino';
import type { Context } from './service/context.ts';
import { clampInstants } from './store/clamp-instants.ts';
import { readDatabaseTime } from './store/database.ts';
import type { Db } from './store/tables.ts';

const everyMs = 30_000;
/** Milliseconds. Smaller differences may result from the reading. */
const toleratedMs = 1_000;
const reportedMs = 5_000;

/** The time for keys, sessions and expiry: the database's, so that all replicas agree. */
export interface DatabaseClock {
  now(): Date;
  stop(): void;
}

/** Measures the offset between this host's clock and the database's, now and every 30 s. */
export async function followDatabaseClock(db: Db, logger: Logger): Promise<DatabaseClock> {
  let offsetMs = 0;
  let isReported = false;
  const read = async () => {
    const [before, wall] = [performance.now(), Date.now()];
    const database = (await readDatabaseTime(db)).getTime();
    const measured = database - wall - (performance.now() - before) / 2;
    offsetMs = Math.abs(measured) < toleratedMs ? 0 : measured;
    const isWrong = Math.abs(offsetMs) > reportedMs;
    if (isWrong && !isReported) {
      const facts = { seconds: Math.round(-offsetMs / 1000) };
      logger.warn(
        facts,
        'the clock of this machine differs from that of the database, which is used; correct the clock of this machine',
      );
    }
    isReported = isWrong;
  };
  await read();
  const timer = setInterval(() => read().catch(() => undefined), everyMs);
  timer.unref();
  return { now: () => new Date(Date.now() + offsetMs), stop: () => clearInterval(timer) };
}

/** Milliseconds by which a clock may run slow between two readings. */
const slownessMs = 2_000;

export interface ClockWatch {
  /** Corrects stored instants at the first call, and if the clock was set back since the last. */
  check(): Promise<void>;
}

/**
 * Compares the later of the database's and this process's clock with the steady clock. Otherwise
 * rows stored while a clock was ahead would stay newer than later rows for as long.
 */
export function createClockWatch({ db, readTime, now, steadyNow }: Context): ClockWatch {
  /** How far the clock was ahead of the steady clock; null before the first reading. */
  let ahead: number | null = null;
  return {
    async check() {
      const at = new Date(Math.max((await readTime(db)).getTime(), now().getTime()));
      const isBack = ahead === null || at.getTime() - steadyNow() < ahead - slownessMs;
      if (isBack) await clampInstants(db, at);
      ahead = at.getTime() - steadyNow();
    },
  };
}
