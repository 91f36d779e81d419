import { connect, createServer, type Socket } from 'node:net';
import { Kysely, sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { OutcomeUnknown, Unavailable } from '../../../../src/control-plane/errors.ts';
import { announce, listen, notifyBy } from '../../../../src/control-plane/store/postgres/changes.ts';
import { type DatabaseTarget, parseDatabaseUrl } from '../../../../src/control-plane/store/postgres/database-url.ts';
import { explainStart } from '../../../../src/control-plane/store/postgres/errors.ts';
import { Client, createPool } from '../../../../src/control-plane/store/postgres/pool.ts';
import { postgresDialect } from '../../../../src/control-plane/store/postgres/store.ts';
import type { Db, Tables } from '../../../../src/control-plane/store/tables.ts';
import { transact } from '../../../../src/control-plane/store/transact.ts';
import { Secret } from '../../../../src/core/crypto/secret.ts';
import { eventually } from '../../../lab/eventually.ts';
import { databaseFor, postgres } from '../../databases.ts';
import { openPlane, type Plane } from '../../harness.ts';
import { asSuperuser } from '../../postgres-server.ts';

if (postgres === null) throw new Error('these tests are for PostgreSQL');
const server = postgres;

let plane: Plane;
let target: DatabaseTarget;
let db: Db;
beforeAll(async () => {
  plane = await openPlane();
  await plane.server.close();
  target = parseDatabaseUrl((await databaseFor(plane.dataDir)) ?? new Secret(''));
  db = new Kysely<Tables>({ dialect: postgresDialect(createPool(target)) });
  for (const name of ['one', 'two']) await db.insertInto('organizations').values({ name }).execute();
});
afterAll(async () => {
  await db.destroy();
  await plane.removeData();
});

const rename = (within: Db, id: number, name: string) =>
  within.updateTable('organizations').set({ name }).where('id', '=', id).execute();
const names = async () =>
  (await db.selectFrom('organizations').select('name').orderBy('id').execute()).map(({ name }) => name);
const fail = (within: Db, state: string) =>
  sql`do ${sql.lit(`begin raise exception using errcode = '${state}'; end`)}`.execute(within);

describe('a transaction', () => {
  test('that meets another one crosswise is done again, and both are done', async () => {
    const met = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    let tries = 0;
    const work = (mine: 0 | 1) =>
      transact(db, async (within) => {
        tries += 1;
        await rename(within, 2 + mine, `of ${mine}`);
        met[mine].resolve();
        await met[mine === 0 ? 1 : 0].promise;
        await rename(within, 3 - mine, `by ${mine}`);
      });
    await Promise.all([work(0), work(1)]);
    expect(tries).toBe(3);
    const [, one, two] = await names();
    expect([
      ['of 0', 'by 0'],
      ['by 1', 'of 1'],
    ]).toContainEqual([one, two]);
  });

  test.each([
    ['40001', 6, Unavailable],
    ['40P01', 6, Unavailable],
    ['23505', 6, '23505'],
    ['22012', 1, '22012'],
  ])('that fails with %s each time is tried %i times', async (state, times, error) => {
    const work = vi.fn((within: Db) => fail(within, state));
    await expect(transact(db, work)).rejects.toThrow(error);
    expect(work).toHaveBeenCalledTimes(times);
  });
});

describe('when the connection is cut', () => {
  const cut = (query: string) =>
    eventually(`a connection is at ${query}`, async () => {
      const cutOff = `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = $1 and pid <> pg_backend_pid() and state <> 'idle' and query like $2`;
      return (
        ((await asSuperuser(server, (client) => client.query(cutOff, [target.database, query]))).rowCount ?? 0) > 0
      );
    });

  test('before the commit, nothing was done, and the caller may ask again', async () => {
    const before = await names();
    const work = transact(db, async (within) => {
      await rename(within, 2, 'cut');
      await sql`select pg_sleep(60)`.execute(within);
    });
    await Promise.all([expect(work).rejects.toThrow(Unavailable), cut('select pg_sleep%')]);
    expect(await names()).toEqual(before);
  });

  test('while it reads, the same', async () => {
    const reading = sql`select pg_sleep(60)`.execute(db);
    await Promise.all([expect(reading).rejects.toThrow(Unavailable), cut('select pg_sleep%')]);
  });

  test('within the commit, or a change of one statement, the outcome is unknown', async () => {
    await sql`create function linger() returns trigger language plpgsql as
      $$ begin perform pg_sleep(60); return null; end $$`.execute(db);
    await sql`create constraint trigger linger after insert on organizations deferrable initially deferred
      for each row execute function linger()`.execute(db);
    const insert = (within: Db) => within.insertInto('organizations').values({ name: 'late' }).execute();
    await Promise.all([expect(transact(db, insert)).rejects.toThrow(OutcomeUnknown), cut('commit')]);
    await Promise.all([expect(insert(db)).rejects.toThrow(OutcomeUnknown), cut('insert%')]);
    await sql`drop function linger cascade`.execute(db);
  });
});

/** A relay to the server that, on request, passes nothing on although no connection ends. */
async function openWay() {
  const sockets: Socket[] = [];
  const way = createServer((from) => {
    const to = connect(`${server.socket}/.s.PGSQL.${server.port}`);
    for (const [one, other] of [[from, to] as const, [to, from] as const]) {
      sockets.push(one);
      one.pipe(other).on('error', () => undefined);
      one.on('close', () => other.destroy());
    }
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    way.close();
  });
  await eventually('the way is open', () => way.listening);
  const { port } = way.address() as { port: number };
  return { port, block: () => sockets.splice(0).map((socket) => socket.unpipe().pause()) };
}

test('a listener notices a connection that is dead without an end, and listens on another one', async () => {
  const { port, block } = await openWay();
  const received: (number | 'all' | 'lost')[] = [];
  const events = {
    notify: (network: number) => received.push(network),
    notifyAll: () => received.push('all'),
    lost: () => received.push('lost'),
  };
  const listener = await listen({ ...target, host: '127.0.0.1', port }, events, notifyBy(db), {
    everyMs: 50,
    patienceMs: 500,
    firstPatienceMs: 5000,
  });
  onTestFinished(listener.close);
  const other = 'another-process';
  await announce(db, other, 7, 'map');
  await eventually('the change is received', () => received.length === 1);
  block();
  await announce(db, other, 8, 'map');
  await eventually('it listens again', () => received.includes('all'));
  await announce(db, listener.name, 9, 'map');
  await announce(db, other, 10, 'map');
  await eventually('the next change is received', () => received.includes(10));
  expect(received).toEqual([7, 'lost', 'all', 10]);
});

test('a listener that reconnects reports all networks as changed once it listens, not before', async () => {
  const { port, block } = await openWay();
  const received: (number | 'all')[] = [];
  const events = {
    notify: (network: number) => received.push(network),
    notifyAll: () => received.push('all'),
    lost: () => {},
  };
  const way = { ...target, host: '127.0.0.1', port };
  const listener = await listen(way, events, notifyBy(db), { everyMs: 50, patienceMs: 500, firstPatienceMs: 20_000 });
  onTestFinished(listener.close);
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const query = Client.prototype.query;
  const holding = vi.spyOn(Client.prototype, 'query').mockImplementation(async function (this: Client, ...given) {
    if (String(given[0]).startsWith('listen cpn_network_changed')) {
      reached.resolve();
      await released.promise;
    }
    return Reflect.apply(query, this, given);
  });
  onTestFinished(() => holding.mockRestore());
  for (const socket of block()) socket.destroy();
  await reached.promise;
  // It does not listen yet: this one is lost, and part of what is reported then.
  await announce(db, 'another-process', 8, 'map');
  expect(received).toEqual([]);
  released.resolve();
  await eventually('it listens again', () => received.includes('all'));
  await announce(db, 'another-process', 9, 'map');
  await eventually('the next change is received', () => received.includes(9));
  expect(received).toEqual(['all', 9]);
});

test('a connection that ends before the first notification is no pooler in transaction mode: a retry helps', async () => {
  const { port, block } = await openWay();
  const way = { ...target, host: '127.0.0.1', port };
  const events = { notify: () => {}, notifyAll: () => {}, lost: () => {} };
  const cut = async () => {
    for (const socket of block()) socket.destroy();
  };
  const patient = { everyMs: 50, patienceMs: 60_000, firstPatienceMs: 60_000 };
  const refused: unknown = await listen(way, events, cut, patient).catch((error) => error);
  expect(refused).toEqual(new Error('the connection ended'));
  expect(explainStart(refused, way)).toMatchObject({ isRetryable: true });
});

test('connections that were idle and answer no more are left, all at once, and the work is done on a new one', async () => {
  const { port, block } = await openWay();
  const pool = createPool({ ...target, host: '127.0.0.1', port }, { forMs: 0, patienceMs: 500 });
  const through = new Kysely<Tables>({ dialect: postgresDialect(pool) });
  onTestFinished(() => through.destroy());
  const first = new Set(await Promise.all([1, 2, 3, 4].map(() => backendOf(through))));
  expect(first.size).toBeGreaterThan(1);
  block();
  const asked = vi.spyOn(Client.prototype, 'answersWithin');
  onTestFinished(() => asked.mockRestore());
  expect(await backendOf(through)).toSatisfy((pid) => !first.has(pid));
  expect(asked).toHaveBeenCalledTimes(1);
});

async function backendOf(within: Db): Promise<number | undefined> {
  return (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(within)).rows[0]?.pid;
}
