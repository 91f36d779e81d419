import { setTimeout as sleep } from 'node:timers/promises';
import { Unavailable } from '../errors.ts';
import { createGate } from '../turns.ts';
import { isConflict, isDeadlock } from './postgres-errors.ts';
import type { Db } from './tables.ts';

const attempts = 6;

/** Those who change one network wait for each other: fewer of them than there are connections leave some to those who only read. */
const gate = createGate(6, 1000, () => new Unavailable('too many changes at once'));

/**
 * Works in one transaction. When it fails because of another one at the same time it is done again, so `work` changes nothing but
 * the database. What it reads and then changes it locks first: other transactions go on beside it.
 */
export async function transact<Result>(db: Db, work: (db: Db) => Promise<Result>): Promise<Result> {
  return gate(() => tryRepeatedly(db, work));
}

async function tryRepeatedly<Result>(db: Db, work: (db: Db) => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await db.transaction().execute(work);
    } catch (error) {
      if (!isConflict(error)) throw error;
      if (attempt === attempts) throw isDeadlock(error) ? new Unavailable('too many changes at once', 1, error) : error;
      // Whoever lost to each other are not to meet again.
      await sleep(Math.random() * 10 * 2 ** attempt);
    }
  }
}

/** Reads all that `work` reads as it was at one moment. */
export async function readSnapshot<Result>(db: Db, work: (db: Db) => Promise<Result>): Promise<Result> {
  return db.transaction().setIsolationLevel('repeatable read').setAccessMode('read only').execute(work);
}
