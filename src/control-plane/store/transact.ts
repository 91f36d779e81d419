import { setTimeout as sleep } from 'node:timers/promises';
import { createSemaphore } from '../concurrency.ts';
import { Unavailable } from '../errors.ts';
import type { Db } from './tables.ts';

const attempts = 6;

/** Changes of a network wait for each other. Fewer than connections, so that reads find one. */
const semaphore = createSemaphore(6, 1000, () => new Unavailable('too many changes at once'));

/**
 * Runs `work` again after a conflict: it must change only the database. Transactions run
 * concurrently: `work` must lock rows that it reads in order to change.
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

/** Runs `work` in a read-only transaction: all its reads see the same moment. */
export async function readSnapshot<Result>(db: Db, work: (db: Db) => Promise<Result>): Promise<Result> {
  return db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only').execute(work);
}

/** True for an error that a concurrent transaction may cause. A retry sees the other's result. */
export function isConflict(error: unknown): boolean {
  return /^(40|23503|23505|23P01)/.test(sqlStateOf(error) ?? '');
}

/** True if PostgreSQL recommends a retry of the transaction. */
function isDeadlock(error: unknown): boolean {
  return sqlStateOf(error)?.startsWith('40') ?? false;
}

/** PostgreSQL's SQLSTATE; null for other errors, such as a broken connection. */
export function sqlStateOf(error: unknown): string | null {
  const { code, severity } = (error ?? {}) as { readonly code?: unknown; readonly severity?: unknown };
  return typeof code === 'string' && typeof severity === 'string' ? code : null;
}
