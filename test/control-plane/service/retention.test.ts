import { expect, onTestFinished, test, vi } from 'vitest';
import {
  pruneAudit,
  pruneAuditDaily,
  pruneEvents,
  pruneEventsHourly,
} from '../../../src/control-plane/service/retention.ts';
import type { NewEntry } from '../../../src/control-plane/store/audit.ts';
import type { Tables } from '../../../src/control-plane/store/tables.ts';
import { ago, day, type Rows, readTime, withRows } from '../store/stored-rows.ts';

const pause = async () => undefined;

/** Whether a caller can make entries of this action again and again without limit. */
const actions = {
  ...{ 'login.refused': true, 'login.new_address': true, login: true, logout: true, 'session.revoke': true },
  ...{ 'token.create': true, 'token.revoke': true, 'password.change': true, 'password.refused': true },
  ...{ 'network.create': true, 'network.update': true, 'network.delete': true },
  ...{ 'key.create': false, 'key.revoke': false, 'peer.enroll': false, 'peer.replace': false, 'peer.update': false },
  ...{ 'peer.suspend': false, 'peer.resume': false, 'peer.expire': false, 'peer.delete': false },
  ...{ 'user.create': false, 'user.update': false, 'user.delete': false, 'password.reset': false },
};

interface AddedEntry extends Partial<Pick<NewEntry, 'actor_kind' | 'actor_id' | 'address'>> {
  readonly action: string;
  readonly at: string;
}

const addEntries = ({ db, organization }: Rows, entries: readonly AddedEntry[]) =>
  db
    .insertInto('audit_entries')
    .values(
      entries.map((each) => ({
        ...{ organization_id: organization, actor_kind: 'system' as const },
        ...{ target_kind: 'user' as const, details: '{}', ...each },
      })),
    )
    .execute();

test.each([1, 7, 500])(
  'of each action that can be repeated without limit the newest entries are kept, in batches of %i',
  (batch) =>
    withRows(async (rows) => {
      const names = Object.keys(actions);
      for (const seconds of [30, 20, 10])
        await addEntries(
          rows,
          names.map((action) => ({ action, at: ago(seconds * 1000) })),
        );
      await pruneAudit({ db: rows.db, readTime }, { days: 365, mostOfEach: 2, batch, pause });
      const left = await rows.db.selectFrom('audit_entries').select(['action', 'at']).orderBy('id').execute();
      const expected = Object.entries(actions).map(([action, isRepeatable]) => [
        action,
        (isRepeatable ? [20, 10] : [30, 20, 10]).map((seconds) => ago(seconds * 1000)),
      ]);
      const instantsOf = (action: string) => left.filter((each) => each.action === action).map(({ at }) => at);
      expect(names.map((action) => [action, instantsOf(action)])).toEqual(expected);
    }),
);

const user = (actor_id: number) => ({ actor_kind: 'user' as const, actor_id });
const unknown = (address: string) => ({ actor_kind: 'nobody' as const, address });

test.each<[string, string, Record<string, Partial<AddedEntry>>, string, readonly string[]]>([
  ['a user pushes out its own entries', 'login', { a: user(1), b: user(2) }, 'abaaaa', ['b', 'a', 'a', 'a']],
  ['two users share what a third leaves', 'login', { a: user(1), b: user(2), c: user(3) }, 'acbaabba', ['c', 'b', 'a']],
  [
    'an address pushes out its own entries, also with others of its prefix',
    'login.refused',
    { a: unknown('192.0.2.1'), b: unknown('192.0.2.2'), c: unknown('198.51.100.1'), d: unknown('unix') },
    'cdabababab',
    ['c', 'd', 'a', 'b'],
  ],
  [
    'of more actors than entries, the newest entries are kept',
    'login',
    Object.fromEntries([...'abcdef'].map((name, id) => [name, user(id + 1)])),
    'abcdef',
    ['c', 'd', 'e', 'f'],
  ],
])('beyond the limit of an action, %s', (_, action, actors, order, expected) =>
  withRows(async (rows) => {
    const entries = [...order].map((name, at) => ({ action, at: ago((order.length - at) * 1000), ...actors[name] }));
    for (const entry of entries) await addEntries(rows, [entry]);
    const most = expected.length;
    for (let times = 0; times < 2; times += 1) {
      await pruneAudit({ db: rows.db, readTime }, { days: 365, mostOfEach: most, batch: 3, pause });
      const left = await rows.db.selectFrom('audit_entries').select('at').orderBy('id').execute();
      expect(left.map(({ at }) => order[entries.findIndex((each) => each.at === at)])).toEqual(expected);
    }
  }),
);

interface Kept {
  readonly table: keyof Tables;
  readonly column: string;
  readonly days: number;
  readonly add: (rows: Rows, at: string, id: number) => Promise<unknown>;
}

/** What is kept for some days; the audit log for as long as the operator says. */
const auditDays = 10;
const kept: readonly Kept[] = [
  {
    ...{ table: 'audit_entries', column: 'at', days: auditDays },
    add: (rows, at) => addEntries(rows, [{ action: 'peer.enroll', at }]),
  },
  {
    ...{ table: 'former_identities', column: 'removed_at', days: auditDays },
    add: ({ db, network }, removed_at, id) =>
      db
        .insertInto('former_identities')
        .values({ network_id: network, identity_key: `${id}`, removed_at })
        .execute(),
  },
  {
    ...{ table: 'deleted_networks', column: 'deleted_at', days: 90 },
    add: ({ db, organization }, deleted_at, network_id) =>
      db
        .insertInto('deleted_networks')
        .values({ network_id, organization_id: organization, name: 'n', nonce: 'n', deleted_at })
        .execute(),
  },
  {
    ...{ table: 'deliveries', column: 'created_at', days: 7 },
    add: ({ db }, created_at, event_id) =>
      db
        .insertInto('deliveries')
        .values({ event_id, body: '{}', created_at, attempts: 0, next_at: created_at })
        .execute(),
  },
  {
    ...{ table: 'events', column: 'at', days: 30 },
    add: ({ db, network }, at) =>
      db.insertInto('events').values({ network_id: network, at, type: 'peer.online', details: '{}' }).execute(),
  },
];

test('each kind of record goes after its days, and not before', () =>
  withRows(async (rows) => {
    const instants = (days: number) => [ago(days * day + 1), ago(days * day), ago(0)];
    for (const { days, add } of kept) for (const [id, at] of instants(days).entries()) await add(rows, at, id + 1);
    await pruneAudit({ db: rows.db, readTime }, { days: auditDays, pause });
    await pruneEvents({ db: rows.db, readTime }, { pause });
    const left = await Promise.all(
      kept.map(async ({ table, column }) => {
        const read = rows.db
          .selectFrom(table as 'events')
          .select(column as 'at')
          .orderBy(column as 'at');
        return [table, (await read.execute()).map((row) => Object.values(row)[0])];
      }),
    );
    expect(left).toEqual(kept.map(({ table, days }) => [table, instants(days).slice(1)]));
  }));

test.each([
  ['daily', day, pruneAuditDaily],
  [
    'hourly',
    day / 24,
    (context: Parameters<typeof pruneEvents>[0], _days: number, onFailure: (error: unknown) => void) =>
      pruneEventsHourly(context, onFailure),
  ],
] as const)(
  'records are pruned at the start and %s, one run after another, also after a failure, until the stop',
  async (_when, ms, start) => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    let runs = 0;
    const slow = Promise.withResolvers<Date>();
    const readTime = async () => {
      runs += 1;
      if (runs === 3) return slow.promise;
      throw new Error(`the database is away in run ${runs}`);
    };
    const failures: string[] = [];
    const pruning = start({ db: null as never, readTime }, 1, (error) => void failures.push((error as Error).message));
    await vi.advanceTimersByTimeAsync(ms - 1);
    expect(failures).toEqual(['the database is away in run 1']);
    await vi.advanceTimersByTimeAsync(1);
    expect(failures).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(2 * ms);
    expect([runs, failures.length]).toEqual([3, 2]);
    slow.reject(new Error('the database is away in run 3'));
    await vi.advanceTimersByTimeAsync(0);
    expect([runs, failures.length]).toEqual([4, 4]);
    await pruning.stop();
    await vi.advanceTimersByTimeAsync(3 * ms);
    expect(runs).toBe(4);
  },
);

test('the stop waits for the run under way', async () => {
  const slow = Promise.withResolvers<Date>();
  const pruning = pruneEventsHourly({ db: null as never, readTime: () => slow.promise }, () => {});
  let isOver = false;
  const stopped = pruning.stop().then(() => {
    isOver = true;
  });
  await new Promise(setImmediate);
  expect(isOver).toBe(false);
  slow.reject(new Error('the database is away'));
  await stopped;
});
