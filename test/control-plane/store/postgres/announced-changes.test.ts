import { randomBytes } from 'node:crypto';
import { type Kysely, type KyselyPlugin, sql } from 'kysely';
import pg from 'pg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Unavailable } from '../../../../src/control-plane/errors.ts';
import { Evaluator } from '../../../../src/control-plane/health/evaluate.ts';
import { ChangeNotifier } from '../../../../src/control-plane/push/change-notifier.ts';
import type { Topic } from '../../../../src/control-plane/store/database.ts';
import { AnnouncedChanges } from '../../../../src/control-plane/store/postgres/announced-changes.ts';
import { listen } from '../../../../src/control-plane/store/postgres/changes.ts';
import { parseDatabaseUrl } from '../../../../src/control-plane/store/postgres/database-url.ts';
import { translate } from '../../../../src/control-plane/store/postgres/errors.ts';
import type { Db, Tables } from '../../../../src/control-plane/store/tables.ts';
import { Secret } from '../../../../src/core/crypto/secret.ts';
import { eventually } from '../../../lab/eventually.ts';
import { databaseFor, postgres, withDatabase } from '../../databases.ts';
import { makeFolder, startPlane } from '../../harness.ts';
import { controlStatements } from '../../held-statements.ts';
import { asSuperuser, urlOf } from '../../postgres-server.ts';
import { changed, long, makeOffice, outcome, read, untilWaiting } from '../../push/long-poll.ts';

if (postgres === null) throw new Error('these tests are for PostgreSQL');
const server = postgres;
const statements = controlStatements();

/** The URL of the database for a role that has the right to connect alone, as each role has by default. */
async function urlOfNeighbour(dataDir: string): Promise<Secret> {
  const role = `neighbour_${randomBytes(6).toString('hex')}`;
  await asSuperuser(server, (client) => client.query(`create role ${role} login`));
  onTestFinished(() => asSuperuser(server, (client) => client.query(`drop role ${role}`)).then(() => undefined));
  const { pathname } = new URL((await databaseFor(dataDir))?.reveal() ?? '');
  return new Secret(urlOf({ ...server, user: role }, pathname.slice(1)));
}

async function asNeighbour<Result>(url: Secret, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const { host, port, database, user } = parseDatabaseUrl(url);
  const client = new pg.Client({ host, port, database, user: user ?? '' });
  await client.connect();
  return work(client).finally(() => client.end());
}

test('a flood of notifications by a role that may only connect costs reads of no network, and pushes arrive', async () => {
  const dataDir = makeFolder();
  const one = await startPlane({ dataDir });
  const notifier = new ChangeNotifier();
  const plane = await startPlane({ dataDir, notifier });
  const other = { plane, notifier, token: await one.signIn('owner') };
  const { network, peer } = await makeOffice({ plane: one, token: other.token });
  const { network: unwaited } = await makeOffice({ plane: one, token: other.token });
  const waiting = read(other, network, 2, long);
  await untilWaiting(other, network);
  const wakes = vi.spyOn(ChangeNotifier.prototype, 'notify');
  const evaluations = vi.spyOn(Evaluator.prototype, 'schedule');
  onTestFinished(() => {
    wakes.mockRestore();
    evaluations.mockRestore();
  });
  await asNeighbour(await urlOfNeighbour(dataDir), async (neighbour) => {
    await expect(neighbour.query('select from networks')).rejects.toThrow('permission denied');
    for (const channel of ['cpn_network_changed', 'cpn_health_changed', 'cpn_peer_messages']) {
      const forged = [
        "'forged ' || n + 1000",
        `'forged-' || n || ' ${network}'`,
        `'forged-' || n || ' ${unwaited}'`,
        "'9 ' || n || repeat('9', 40)",
        "repeat('x', 1000) || ' ' || n",
      ];
      for (const payload of forged)
        await neighbour.query(`select count(pg_notify('${channel}', ${payload})) from generate_series(1, 14000) n`);
    }
  });
  const path = `/api/networks/${network}/peers/${peer}`;
  expect((await one.call('PATCH', path, { token: other.token, body: { name: 'moved' } })).status).toBe(200);
  // It was announced after the flood.
  expect(outcome(await waiting)).toEqual(changed(3));
  const atOther = wakes.mock.calls.filter((_, index) => wakes.mock.contexts[index] === notifier);
  // The first hint that names the network is checked by its waits, because nothing was read before.
  expect(atOther.length).toBeLessThanOrEqual(2);
  for (const [woken] of [...wakes.mock.calls, ...evaluations.mock.calls]) expect(woken).toBe(network);
  expect((await plane.call('GET', '/readyz')).status).toBe(200);
  expect(plane.log()).not.toContain('not listening');
});

test('a change that a full queue of notifications fails is refused for now, and was not made', () => {
  // As PostgreSQL words it: the queue has 8 GiB, too many to fill it here.
  const full = Object.assign(new Error('too many notifications in the NOTIFY queue'), {
    ...{ code: '54000', severity: 'ERROR' },
  });
  const refused = translate(full, true);
  expect(refused).toBeInstanceOf(Unavailable);
  expect((refused as Unavailable).message).toContain('queue of notifications');
});

test('the start warns where any role may connect, and not after the REVOKE', async () => {
  const warning = 'any role of the PostgreSQL server may connect to the database';
  const dataDir = makeFolder();
  const url = await databaseFor(dataDir);
  const { database } = parseDatabaseUrl(url as Secret);
  await urlOfNeighbour(dataDir);
  expect((await startPlane({ dataDir })).log()).toContain(warning);
  await asSuperuser(server, (client) => client.query(`revoke connect on database ${database} from public`));
  onTestFinished(() =>
    asSuperuser(server, (client) => client.query(`grant connect on database ${database} to public`)).then(
      () => undefined,
    ),
  );
  expect((await startPlane({ dataDir })).log()).not.toContain(warning);
});

describe('announced changes', () => {
  interface On {
    readonly changes: AnnouncedChanges;
    readonly db: Kysely<Tables>;
    readonly network: number;
    /** The name of the database. */
    readonly database: string;
    /** A network for which no request waits. */
    readonly other: number;
    /** What waits were ended for. */
    readonly notified: [number, Topic][];
    readonly awaited: Set<number>;
    readonly reads: () => number;
    /** The next read fails. */
    failNext(): void;
  }

  async function withChanges(work: (on: On) => Promise<void>): Promise<void> {
    const plane = await startPlane();
    const token = await plane.signIn('owner');
    const { network } = await makeOffice({ plane, token });
    const { network: other } = await makeOffice({ plane, token });
    await withDatabase(plane.dataDir, async (db) => {
      let [reads, isFailing] = [0, false];
      const plugin: KyselyPlugin = {
        transformQuery: ({ node }) => {
          reads += 1;
          if (!isFailing) return node;
          isFailing = false;
          throw new Error('the database does not answer');
        },
        transformResult: async ({ result }) => result,
      };
      const notified: [number, Topic][] = [];
      const awaited = new Set([network]);
      const changes = new AnnouncedChanges(db.withPlugin(plugin), {
        notify: (...each) => void notified.push(each),
        isAwaited: (id) => awaited.has(id),
      });
      const failNext = () => {
        isFailing = true;
      };
      const { database } = parseDatabaseUrl((await databaseFor(plane.dataDir)) as Secret);
      await work({ changes, db, database, network, other, notified, awaited, reads: () => reads, failNext });
      await changes.stop();
    });
  }

  async function addMessage(db: Db, network_id: number): Promise<void> {
    const { id: peer_id } = await db
      .selectFrom('peers')
      .select('id')
      .where('network_id', '=', network_id)
      .executeTakeFirstOrThrow();
    await db
      .insertInto('peer_messages')
      .values({ network_id, peer_id, kind: 'probe', data: '{}', created_at: 'now' })
      .execute();
  }

  const revise = (db: Db, network: number) =>
    db
      .updateTable('networks')
      .set((eb) => ({ revision: eb('revision', '+', 1) }))
      .where('id', '=', network)
      .execute();

  test('that gather are one read, and nothing is read of networks for which no request waits', () =>
    withChanges(async ({ changes, network, notified, reads }) => {
      for (let id = 1000; id < 200_000; id += 1) changes.note(id, 'map');
      expect(reads()).toBe(0);
      for (let count = 0; count < 200_000; count += 1) changes.note(network, 'map');
      await eventually('it is read', () => notified.length > 0);
      expect([notified, reads()]).toEqual([[[network, 'map']], 1]);
    }));

  test('end waits where the network has another revision, or is gone', () =>
    withChanges(async ({ changes, db, network, notified, reads }) => {
      changes.note(network, 'map');
      await eventually('the first is a change', () => notified.length === 1);
      for (let count = 2; count <= 4; count += 1) {
        changes.note(network, 'map');
        await eventually('it is read', () => reads() === count);
      }
      expect(notified).toHaveLength(1);
      await revise(db, network);
      changes.note(network, 'map');
      await eventually('it is another revision', () => notified.length === 2);
      await db.deleteFrom('networks').where('id', '=', network).execute();
      changes.note(network, 'map');
      await eventually('it is gone', () => notified.length === 3);
    }));

  test('of health are found in the revision of the health', () =>
    withChanges(async ({ changes, db, network, notified, reads }) => {
      const save = async (revision: number) => {
        const values = { network_id: network, revision, nonce: 'x', routes: '{}' };
        await db
          .insertInto('network_health')
          .values(values)
          .onConflict((conflict) => conflict.column('network_id').doUpdateSet({ revision }))
          .execute();
        changes.note(network, 'health');
      };
      await save(101);
      await eventually('the first is a change', () => notified.length === 1);
      await save(101);
      await eventually('it is read', () => reads() === 2);
      await save(102);
      await eventually('it is a change', () => notified.length === 2);
      expect(notified).toEqual([
        [network, 'health'],
        [network, 'health'],
      ]);
    }));

  test('of messages are found in the messages of the networks that hints name, also where no request waits', () =>
    withChanges(async ({ changes, db, network, other, notified, awaited, reads }) => {
      awaited.clear();
      changes.note(network, 'messages');
      await eventually('nothing is there', () => reads() === 1);
      await addMessage(db, network);
      await addMessage(db, other);
      for (let count = 0; count < 50_000; count += 1) changes.note(network, 'messages');
      await eventually('it is found', () => notified.length === 1);
      expect([notified, reads()]).toEqual([[[network, 'messages']], 2]);
    }));

  test('of messages are found in all messages where hints name too many networks', () =>
    withChanges(async ({ changes, db, network, other, notified, reads }) => {
      await addMessage(db, network);
      await addMessage(db, other);
      for (let id = 1000; id < 50_000; id += 1) changes.note(id, 'messages');
      await eventually('they are found', () => notified.length === 2);
      expect([new Set(notified.map(([id]) => id)), reads()]).toEqual([new Set([network, other]), 1]);
    }));

  test('that come while earlier ones are read are read after them', () =>
    withChanges(async ({ changes, database, network, notified }) => {
      const held = statements.hold(/as mark from networks/, 'after');
      changes.note(network, 'map');
      await held.reached;
      // The connection of the read is held.
      const revise = 'update networks set revision = revision + 1 where id = $1';
      await asSuperuser(server, (client) => client.query(revise, [network]), database);
      changes.note(network, 'map');
      held.release();
      await eventually('both are changes', () => notified.length === 2);
    }));

  test('are read again after a failure', () =>
    withChanges(async ({ changes, network, notified, reads, failNext }) => {
      failNext();
      changes.note(network, 'map');
      await eventually('it is read', () => notified.length === 1);
      expect(reads()).toBe(2);
    }));

  test('of messages are found in all messages also where the first read of all fails', () =>
    withChanges(async ({ changes, db, network, other, notified, reads, failNext }) => {
      await addMessage(db, network);
      await addMessage(db, other);
      failNext();
      for (let id = 1000; id < 50_000; id += 1) changes.note(id, 'messages');
      await eventually('they are found', () => notified.length === 2);
      expect([new Set(notified.map(([id]) => id)), reads()]).toEqual([new Set([network, other]), 2]);
    }));
});

test.each([
  ['is not lost while others arrive, behind which its own notification is', true, []],
  ['is lost where none arrives', false, ['notifications do not arrive']],
])('a listener %s', async (_, isBusy, expected) => {
  const dataDir = makeFolder();
  const target = parseDatabaseUrl((await databaseFor(dataDir)) as Secret);
  const losses: string[] = [];
  await startPlane({ dataDir });
  await withDatabase(dataDir, async (db) => {
    let sent = 0;
    const send = (channel: string, payload: string) => sql`select pg_notify(${channel}, ${payload})`.execute(db);
    /** The second one is late. */
    const notify = async (channel: string, payload: string) => {
      sent += 1;
      if (sent !== 2) {
        await send(channel, payload);
        return;
      }
      const late = async () => {
        for (let count = 0; count < 30; count += 1) {
          if (isBusy) await send('cpn_network_changed', `forged ${count + 1}`);
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
        if (isBusy) await send(channel, payload);
      };
      void late().catch(() => undefined);
    };
    const events = { notify: () => {}, notifyAll: () => {}, lost: (reason: string) => void losses.push(reason) };
    const keepalive = { everyMs: 10, patienceMs: 2000, firstPatienceMs: 20_000 };
    const listener = await listen(target, events, notify, keepalive);
    await eventually('it goes on', () => sent > 3);
    await listener.close();
  });
  expect(losses.map((reason) => reason.replace(/ \(.*/, ''))).toEqual(expected);
});
