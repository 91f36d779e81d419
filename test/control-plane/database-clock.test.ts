import { PostgresAdapter } from 'kysely';
import type { Logger } from 'pino';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { followDatabaseClock } from '../../src/control-plane/database-clock.ts';
import type { Db } from '../../src/control-plane/store/tables.ts';

const start = Date.parse('2030-01-01T00:00:00.000Z');

beforeEach(() => {
  vi.useFakeTimers({ now: start });
  onTestFinished(() => void vi.useRealTimers());
});

/** A database whose clock is this far ahead of the one of this host; null while it does not answer. */
async function follow(aheadMs: number) {
  const server: { aheadMs: number | null } = { aheadMs };
  const readRow = async () => {
    if (server.aheadMs === null) throw new Error('the database does not answer');
    return { at: String(Date.now() + server.aheadMs) };
  };
  const db = {
    getExecutor: () => ({ adapter: new PostgresAdapter() }),
    selectNoFrom: () => ({ executeTakeFirstOrThrow: readRow }),
  } as unknown as Db;
  const warnings: unknown[] = [];
  const warn = ({ seconds }: { seconds: number }) => void warnings.push(seconds);
  const clock = await followDatabaseClock(db, { warn } as unknown as Logger);
  onTestFinished(clock.stop);
  return { clock, server, warnings };
}

const ahead = ({ clock }: Awaited<ReturnType<typeof follow>>) => clock.now().getTime() - Date.now();
const later = () => vi.advanceTimersByTimeAsync(30_000);

test.each([
  [0, 0, []],
  // The reading may take as long.
  [900, 0, []],
  [-900, 0, []],
  [4_000, 4_000, []],
  [60_000, 60_000, [-60]],
  [-60_000, -60_000, [60]],
])(
  'a database that is %i ms ahead gives a time that is %i ms ahead, with these warnings: %j',
  async (by, expected, seconds) => {
    const following = await follow(by);
    expect([ahead(following), following.warnings]).toEqual([expected, seconds]);
  },
);

test('the offset is measured again, and reported once until it was right', async () => {
  const following = await follow(60_000);
  await later();
  expect(following.warnings).toEqual([-60]);
  following.server.aheadMs = 0;
  await later();
  expect([ahead(following), following.warnings]).toEqual([0, [-60]]);
  following.server.aheadMs = -60_000;
  await later();
  expect([ahead(following), following.warnings]).toEqual([-60_000, [-60, 60]]);
});

test('a database that does not answer leaves the offset as it was; after the end none is measured', async () => {
  const following = await follow(60_000);
  following.server.aheadMs = null;
  await later();
  expect(ahead(following)).toBe(60_000);
  following.server.aheadMs = 7_000;
  await later();
  expect(ahead(following)).toBe(7_000);
  following.clock.stop();
  following.server.aheadMs = 0;
  await later();
  expect(ahead(following)).toBe(7_000);
});
