import { describe, expect, test } from 'vitest';
import { createClockWatch } from '../../../src/control-plane/database-clock.ts';
import { freshLoginMs } from '../../../src/control-plane/domain/tokens.ts';
import type { Context } from '../../../src/control-plane/service/context.ts';
import { clampInstants } from '../../../src/control-plane/store/clamp-instants.ts';
import { findPeerHealth } from '../../../src/control-plane/store/health.ts';
import { ago, day, now, type Rows, withRows } from './stored-rows.ts';

const hour = 3600 * 1000;
const [past, present, future] = [ago(1), ago(0), ago(-1)];

test.each(['last_seen', 'reported_at', 'lost_at'] as const)(
  '%s of a host is never later than now: only a later one is corrected, and nothing else of its row',
  (column) =>
    withRows(async ({ db, addPeer }) => {
      const others = { version: '1', announced: 'online', last_seen: past, reported_at: past, lost_at: past } as const;
      for (const at of [past, present, future]) await addPeer({}, { ...others, [column]: at });
      await clampInstants(db, new Date(now));
      const rows = await db.selectFrom('peer_health').selectAll().orderBy('peer_id').execute();
      expect(rows).toMatchObject([past, present, present].map((at) => ({ ...others, [column]: at })));
    }),
);

test('what is stated of direct paths in the future is forgotten', () =>
  withRows(async ({ db, network, addPeer }) => {
    const rest = { network_id: network, state: 'resting', attempt: 1, tries: 1, data: '{}' } as const;
    for (const at of [past, present, future]) {
      const [a, b] = [await addPeer(), await addPeer()];
      await db.insertInto('peer_endpoints').values({ peer_id: a, source: b, network_id: network, at }).execute();
      await db
        .insertInto('peer_pairs')
        .values({ ...rest, a, b, started_at: at, at, next_at: future })
        .execute();
      await db.insertInto('path_starts').values({ network_id: network, address: '192.0.2.1', starts: 1, at }).execute();
    }
    await clampInstants(db, new Date(now));
    for (const table of ['peer_endpoints', 'peer_pairs', 'path_starts'] as const) {
      const rows = await db.selectFrom(table).select('at').orderBy('at').execute();
      expect(rows.map(({ at }) => at)).toEqual([past, present]);
    }
  }));

test('rules wait for a confirmation for an hour at most', () =>
  withRows(async ({ db, addNetwork }) => {
    const rules = { mode: 'open', rules: '[]', tests: '[]', require_enforcement: 0, serial: 1, nonce: 'n' } as const;
    for (const confirm_until of [ago(-hour), ago(-day), null]) {
      const network_id = await addNetwork();
      await db
        .insertInto('network_rules')
        .values({ ...rules, network_id, revision: 1, gone: '{}', confirm_until })
        .execute();
    }
    await clampInstants(db, new Date(now));
    const rows = await db.selectFrom('network_rules').select('confirm_until').orderBy('network_id').execute();
    expect(rows.map(({ confirm_until }) => confirm_until)).toEqual([ago(-hour), ago(-hour), null]);
  }));

/** Adds a row that expires. */
const add = {
  enrollment_keys: ({ db, network }, created_at, expires_at) =>
    db.insertInto('enrollment_keys').values({
      ...{ network_id: network, name: 'k', token_hash: `${created_at} ${expires_at}`, max_uses: 1, uses: 0 },
      ...{ created_at, expires_at: expires_at ?? '' },
    }),
  sessions: ({ db }, created_at, expires_at, user_id) =>
    db.insertInto('sessions').values({
      ...{ user_id, name: 's', token_hash: `${created_at} ${expires_at}`, created_at, expires_at: expires_at ?? '' },
    }),
  personal_tokens: ({ db }, created_at, expires_at, user_id) =>
    db.insertInto('personal_tokens').values({
      ...{ user_id, name: 't', token_hash: `${created_at} ${expires_at}`, created_at, expires_at },
    }),
} satisfies Record<
  string,
  (rows: Rows, created_at: string, expires_at: string | null, user: number) => { execute(): Promise<unknown> }
>;

test.each(['enrollment_keys', 'sessions', 'personal_tokens'] as const)(
  'of %s those of the future begin now, and live no longer than they were made for',
  (table) =>
    withRows(async (rows) => {
      const user = await rows.addUser();
      const ahead = 3 * day;
      for (const created of [past, present, ago(-ahead)]) {
        const end = new Date(Date.parse(created) + 2 * hour).toISOString();
        await add[table](rows, created, end, user).execute();
      }
      await clampInstants(rows.db, new Date(now));
      const read = rows.db.selectFrom(table).select(['created_at', 'expires_at']).orderBy('id');
      // A login of unknown age proves no password.
      const begin = table === 'sessions' ? ago(freshLoginMs + 1) : present;
      expect(await read.execute()).toEqual([
        { created_at: past, expires_at: ago(1 - 2 * hour) },
        { created_at: present, expires_at: ago(-2 * hour) },
        { created_at: begin, expires_at: ago(-2 * hour) },
      ]);
    }),
);

test('a token without an end stays without one, and its last use is not later than now', () =>
  withRows(async (rows) => {
    await add.personal_tokens(rows, future, null, await rows.addUser()).execute();
    await rows.db.updateTable('personal_tokens').set({ last_used_at: future }).execute();
    await clampInstants(rows.db, new Date(now));
    const token = { created_at: present, expires_at: null, last_used_at: present };
    expect(await rows.db.selectFrom('personal_tokens').selectAll().execute()).toMatchObject([token]);
  }));

test('the last use of a session and of a known prefix is not later than now', () =>
  withRows(async (rows) => {
    const user_id = await rows.addUser();
    for (const last_used_at of [past, future]) {
      await add.sessions(rows, past, last_used_at, user_id).execute();
      await rows.db.updateTable('sessions').set({ last_used_at }).where('expires_at', '=', last_used_at).execute();
      await rows.db.insertInto('known_prefixes').values({ user_id, prefix: last_used_at, last_used_at }).execute();
    }
    await clampInstants(rows.db, new Date(now));
    for (const table of ['sessions', 'known_prefixes'] as const) {
      const uses = await rows.db.selectFrom(table).select('last_used_at').orderBy('last_used_at').execute();
      expect(uses.map(({ last_used_at }) => last_used_at)).toEqual([past, present]);
    }
  }));

test('an app is accepted again after its last code and its failures of the future, and challenges last 5 minutes', () =>
  withRows(async (rows) => {
    const user_id = await rows.addUser();
    const step = Math.floor(now / 30_000);
    const made = { user_id, kind: 'totp', name: 'phone', created_at: past } as const;
    const apps = [
      [{ secret: 'A', lastStep: step + 1, failures: 3, failedAt: past }, past],
      [{ secret: 'B', lastStep: step + 2 }, future],
      [{ secret: 'C', lastStep: step - 9, failures: 10, failedAt: future }, present],
    ] as const;
    for (const [data, last_used_at] of apps)
      await rows.db
        .insertInto('second_factors')
        .values({ ...made, data: JSON.stringify(data), last_used_at })
        .execute();
    for (const expires_at of [ago(-300_000), ago(-300_001)])
      await rows.db
        .insertInto('factor_challenges')
        .values({ user_id, session_id: null, token_hash: expires_at, data: '{}', tries: 0, expires_at })
        .execute();
    await clampInstants(rows.db, new Date(now));
    const stored = await rows.db.selectFrom('second_factors').selectAll().orderBy('id').execute();
    expect(stored.map(({ data, last_used_at }) => [JSON.parse(data), last_used_at])).toEqual([
      [apps[0][0], past],
      [{ secret: 'B', lastStep: step }, present],
      [{ secret: 'C', lastStep: step - 9 }, present],
    ]);
    const left = await rows.db.selectFrom('factor_challenges').select('expires_at').execute();
    expect(left).toEqual([{ expires_at: ago(-300_000) }]);
  }));

test('a message of the future is dropped, and an event for the webhook is due now unless a retry waits for it', () =>
  withRows(async ({ db, network, addPeer }) => {
    const peer_id = await addPeer();
    for (const created_at of [past, present, future])
      await db
        .insertInto('peer_messages')
        .values({ network_id: network, peer_id, kind: 'probe', data: '{}', created_at })
        .execute();
    const deliveries = [
      [0, past, past],
      [0, future, present],
      [0, ago(-2 * hour), present],
      [1, past, past],
      [1, future, future],
      [1, ago(-hour), ago(-hour)],
      [1, ago(-hour - 1), present],
    ] as const;
    for (const [attempts, next_at] of deliveries)
      await db
        .insertInto('deliveries')
        .values({ event_id: 1, body: '{}', created_at: past, attempts, next_at })
        .execute();
    await clampInstants(db, new Date(now));
    const messages = await db.selectFrom('peer_messages').select('created_at').orderBy('id').execute();
    expect(messages.map(({ created_at }) => created_at)).toEqual([past, present]);
    const due = await db.selectFrom('deliveries').select('next_at').orderBy('id').execute();
    expect(due.map(({ next_at }) => next_at)).toEqual(deliveries.map(([, , after]) => after));
  }));

describe('the watch of the clock', () => {
  /** A watch over hosts that were last seen a minute after now, by clocks that the test moves. */
  async function withWatch(
    work: (on: {
      readonly clocks: { database: number; own: number; steady: number; isAway: boolean };
      readonly check: () => Promise<void>;
      /** How far the last request of a host is after now. */
      readonly lastSeen: () => Promise<number>;
    }) => Promise<void>,
  ) {
    await withRows(async ({ db, addPeer }) => {
      const peer = await addPeer({}, { last_seen: ago(-60_000) });
      const clocks = { database: 0, own: 0, steady: 0, isAway: false };
      const failing = db.withPlugin({
        transformQuery: ({ node }) => {
          if (clocks.isAway) throw new Error('the database is away');
          return node;
        },
        transformResult: async ({ result }) => result,
      });
      const { check } = createClockWatch({
        ...{ db: failing, readTime: async () => new Date(now + clocks.database) },
        ...{ now: () => new Date(now + clocks.own), steadyNow: () => clocks.steady },
      } as unknown as Context);
      const lastSeen = async () => Date.parse((await findPeerHealth(db, peer))?.last_seen ?? '') - now;
      await work({ clocks, check, lastSeen });
    });
  }

  test.each([
    ['the clocks of both', 0, 0, 0],
    ['the clock of the database, if that is later', 30_000, 0, 30_000],
    ['the clock of this process, if that is later', 0, 30_000, 30_000],
    ['clocks that are after all of it', 90_000, 0, 60_000],
  ])('corrects what is stored at the first check, by %s', (_by, database, own, expected) =>
    withWatch(async ({ clocks, check, lastSeen }) => {
      Object.assign(clocks, { database, own });
      await check();
      expect(await lastSeen()).toBe(expected);
    }),
  );

  test.each([
    [60_000, false],
    [0, false],
    [-1_900, false],
    [-2_100, true],
    [-60_000, true],
  ])('corrects what is stored after the clock was moved by %i ms: %s', (movedMs, isCorrected) =>
    withWatch(async ({ clocks, check, lastSeen }) => {
      Object.assign(clocks, { database: 60_000, own: 60_000 });
      await check();
      const at = 60_000 + 10_000 + movedMs;
      Object.assign(clocks, { database: at, own: at, steady: 10_000 });
      await check();
      expect(await lastSeen()).toBe(isCorrected ? Math.min(at, 60_000) : 60_000);
    }),
  );

  test('corrects it at the next check after a failure', () =>
    withWatch(async ({ clocks, check, lastSeen }) => {
      clocks.isAway = true;
      await expect(check()).rejects.toThrow('away');
      clocks.isAway = false;
      await check();
      expect(await lastSeen()).toBe(0);
    }));
});
