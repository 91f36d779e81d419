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
  const { result, next } = await semaphore(() => tryRepeatedly(db, work));
  for (const each of next) await each();
  return result;
}

/**
 * Runs `work` after the commit of a transaction, and after it has released its locks. The caller of
 * {@link transact} waits for it.
 */
export function afterCommit(transaction: Db, work: () => Promise<void>): void {
  const queue = queues.get(transaction);
  if (queue === undefined) throw new Error('work was queued outside of a transaction');
  queue.push(work);
}

const queues = new WeakMap<Db, (() => Promise<void>)[]>();

async function tryRepeatedly<Result>(
  db: Db,
  work: (db: Db) => Promise<Result>,
): Promise<{ readonly result: Result; readonly next: readonly (() => Promise<void>)[] }> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const next: (() => Promise<void>)[] = [];
      const result = await db.transaction().execute(async (transaction) => {
        queues.set(transaction, next);
        return work(transaction);
      });
      return { result, next };
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
