import { expect, onTestFinished, test, vi } from 'vitest';
import { createReadinessCheck } from '../../../src/control-plane/service/monitoring.ts';
import type { Db } from '../../../src/control-plane/store/tables.ts';

interface Database {
  read: () => Promise<unknown>;
  write: () => Promise<unknown>;
  isListening: boolean;
}

/** A check of a database whose answers the test gives; what the check did, and whether it passed. */
function open(given: Partial<Database> = {}, deadlineMs = 60_000) {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const database = { read: async () => [], write: async () => {}, isListening: true, ...given };
  const done: string[] = [];
  const chain = (last: () => Promise<unknown>): unknown =>
    new Proxy({}, { get: (_, name) => (name === 'execute' ? last : () => chain(last)) });
  const db = {
    selectFrom: () =>
      chain(() => {
        done.push('read');
        return database.read();
      }),
    insertInto: () =>
      chain(() => {
        done.push('write');
        return database.write();
      }),
  } as unknown as Db;
  const context = { db, now: () => new Date(0), isListening: () => database.isListening };
  const check = createReadinessCheck(context, deadlineMs);
  const outcome = () =>
    check().then(
      () => 'ready',
      (error: Error) => error.message,
    );
  return { database, done, outcome };
}

const away = () => Promise.reject(new Error('lost'));

test('one successful write counts for a second; each check reads', async () => {
  const { done, outcome } = open();
  for (let times = 0; times < 2; times += 1) expect(await outcome()).toBe('ready');
  await vi.advanceTimersByTimeAsync(999);
  expect(await outcome()).toBe('ready');
  expect(done).toEqual(['read', 'write', 'read', 'read']);
  await vi.advanceTimersByTimeAsync(1);
  expect(await outcome()).toBe('ready');
  expect(done.slice(4)).toEqual(['read', 'write']);
});

test.each(['read', 'write'] as const)(
  'a %s that fails is the failure of each check, until one succeeds',
  async (what) => {
    const { database, outcome } = open({ [what]: away });
    for (let times = 0; times < 2; times += 1) {
      expect(await outcome()).toBe('the database does not answer; try again in 1 s');
    }
    database[what] = async () => [];
    expect(await outcome()).toBe('ready');
    // A success of before is none for a read that fails now.
    database.read = away;
    expect(await outcome()).toContain('does not answer');
  },
);

test('checks at the same time share their queries', async () => {
  const slow = Promise.withResolvers<unknown>();
  const { done, outcome } = open({ read: () => slow.promise });
  const checks = [outcome(), outcome()];
  slow.resolve([]);
  expect([await Promise.all(checks), done]).toEqual([
    ['ready', 'ready'],
    ['read', 'write'],
  ]);
});

test('a database that does not answer in time is not waited for any longer', async () => {
  const { outcome } = open({ read: () => new Promise(() => {}) }, 5);
  expect(await outcome()).toBe('the database did not answer within 0.005 s; try again in 1 s');
});

test('changes of other processes must arrive too', async () => {
  const { database, outcome } = open({ isListening: false });
  expect(await outcome()).toBe('listener lost: changes of other processes do not arrive; try again in 1 s');
  database.isListening = true;
  expect(await outcome()).toBe('ready');
});
