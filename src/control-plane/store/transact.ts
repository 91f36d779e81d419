import { setTimeout as sleep } from 'node:timers/promises';
import { createSemaphore } from '../concurrency.ts';
import { Unavailable } from '../errors.ts';
import type { Db } from './tables.ts';

const attempts = 6;

/** Changes of one network wait for each other. With fewer of them than connections, reads always find a connection. */
const semaphore = createSemaphore(6, 1000, () => new Unavailable('too many changes at once'));

/**
 * Runs `work` in one transaction, and again after a conflict with another one, so `work` changes nothing but the database. It locks
 * what it reads and then changes, because transactions run concurrently.
 */
export async function transact<Result>(db: Db, work: (db: Db) => Promise<Result>): Promise<Result> {
  return semaphore(() => tryRepeatedly(db, work));
}

async function tryRepeatedly<Result>(db: Db, work: (db: Db) => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await db.transaction().execute(work);
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (attempt === attempts) throw isDeadlock(error) ? new Unavailable('too many changes at once', 1, error) : error;
      // Random, so that the same transactions do not conflict again.
      await sleep(Math.random() * 10 * 2 ** attempt);
    }
  }
}

/** Reads all that `work` reads as it was at one moment. */
export async function readSnapshot<Result>(db: Db, work: (db: Db) => Promise<Result>): Promise<Result> {
  return db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only').execute(work);
}

/** True for an error with which a transaction may fail because of another one at the same time: tried again, it meets the other's result. */
export function isConflict(error: unknown): boolean {
  return /^(40|23503|23505|23P01)/.test(sqlStateOf(error) ?? '');
}

/** True where PostgreSQL recommends to retry the transaction. */
function isDeadlock(error: unknown): boolean {
  return sqlStateOf(error)?.startsWith('40') ?? false;
}

/** The SQLSTATE that PostgreSQL gave; null for an error of another origin, such as a connection that broke. */
export function sqlStateOf(error: unknown): string | null {
  const { code, severity } = (error ?? {}) as { readonly code?: unknown; readonly severity?: unknown };
  return typeof code === 'string' && typeof severity === 'string' ? code : null;
}
