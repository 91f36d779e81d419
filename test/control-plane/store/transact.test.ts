import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import type { Db } from '../../../src/control-plane/store/tables.ts';
import { transact } from '../../../src/control-plane/store/transact.ts';

/** A database whose transactions are the work alone. */
const db = {
  transaction: () => ({ execute: <Result>(work: (db: Db) => Promise<Result>) => work(db) }),
} as unknown as Db;

beforeEach(() => {
  // No pause between two attempts.
  const random = vi.spyOn(Math, 'random').mockReturnValue(0);
  onTestFinished(() => random.mockRestore());
});

/** Fails so many attempts with this state of PostgreSQL; the outcome, and the number of attempts. */
async function attempt(code: string, failing = Number.POSITIVE_INFINITY, fields: object = { severity: 'ERROR' }) {
  let attempts = 0;
  const work = async () => {
    attempts += 1;
    if (attempts <= failing) throw Object.assign(new Error(`state ${code}`), { code, ...fields });
    return 'done';
  };
  const outcome = await transact(db, work).catch((error: Error) => `${error.name}: ${error.message}`);
  return [outcome, attempts];
}

const tooMany = 'Unavailable: too many changes at once; try again in 1 s';

test.each([
  ['40001', tooMany],
  ['40P01', tooMany],
  ['23503', 'Error: state 23503'],
  ['23505', 'Error: state 23505'],
  ['23P01', 'Error: state 23P01'],
])('a conflict %s is tried again up to five times, and then it is: %s', async (code, outcome) => {
  expect(await attempt(code, 1)).toEqual(['done', 2]);
  expect(await attempt(code, 5)).toEqual(['done', 6]);
  expect(await attempt(code)).toEqual([outcome, 6]);
});

test.each([
  ['23502', {}],
  ['42P01', { severity: 'ERROR' }],
  ['08006', { severity: 'FATAL' }],
  ['57P01', { severity: 'FATAL' }],
  // Another library has this code too.
  ['40001', {}],
])('a failure %s with %j is none, and is tried once', async (code, fields) => {
  expect(await attempt(code, 1, fields)).toEqual([`Error: state ${code}`, 1]);
});

test('six transactions run at once, and the others wait for one to end, also for one that fails', async () => {
  const started: number[] = [];
  const ends = Array.from({ length: 9 }, () => Promise.withResolvers<number>());
  const results = ends.map(({ promise }, at) =>
    transact(db, async () => {
      started.push(at);
      return promise;
    }),
  );
  const settled = Promise.allSettled(results);
  await new Promise(setImmediate);
  expect(started).toEqual([0, 1, 2, 3, 4, 5]);
  ends[3]?.reject(new Error('a rule is broken'));
  ends[0]?.resolve(0);
  await new Promise(setImmediate);
  expect(started).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  for (const [at, { resolve }] of ends.entries()) resolve(at);
  await settled;
  expect(started).toHaveLength(9);
});
