import type { ServerResponse } from 'node:http';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ChangeNotifier } from '../../../../src/control-plane/push/change-notifier.ts';
import { Secret } from '../../../../src/core/crypto/secret.ts';
import { eventually } from '../../../lab/eventually.ts';
import { databaseFor, postgres, withDatabase } from '../../databases.ts';
import {
  enroll,
  makeFolder,
  makeKey,
  makeNetwork,
  openPlane,
  owner,
  slowPasswords,
  startPlane,
} from '../../harness.ts';
import { accept, startReceiver, webhookFlags } from '../../health/receiver.ts';
import { asSuperuser } from '../../postgres-server.ts';
import { changed, long, makeOffice, outcome, read, tagged, untilWaiting } from '../../push/long-poll.ts';
import { kill, type ServerProcess, startProcess } from '../../start-process.ts';

if (postgres === null) throw new Error('these tests are for PostgreSQL');
const server = postgres;

/** Two control planes over one database; changes are made through the one, and waited for at the other. */
async function startReplicas() {
  const dataDir = makeFolder();
  const ownNotifier = new ChangeNotifier();
  const one = await startPlane({ dataDir, notifier: ownNotifier });
  const notifier = new ChangeNotifier();
  const plane = await startPlane({ dataDir, notifier });
  const token = await one.signIn('owner');
  return { dataDir, one, ownNotifier, other: { plane, notifier, token }, ...(await makeOffice({ plane: one, token })) };
}

const nameOf = async (dataDir: string) => new URL((await databaseFor(dataDir))?.reveal() ?? '').pathname.slice(1);

/** Ends connections of the control planes to the database, from the server's side; gives how many. */
async function terminate(dataDir: string, which: string): Promise<number> {
  const name = await nameOf(dataDir);
  const { rowCount } = await asSuperuser(server, (client) =>
    client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = $1 and application_name = 'cpn-control-plane' and query like $2`,
      [name, which],
    ),
  );
  return rowCount ?? 0;
}

describe('a change through one control plane ends the waits at another', () => {
  test('it does between two processes', async () => {
    const dataDir = makeFolder();
    const one = await startProcess(dataDir);
    const other = await startProcess(dataDir);
    const token = (await one.call('POST', '/api/auth/login', { body: owner })).body.data.access_token;
    const network = await makeNetwork(one, token);
    const key = await makeKey(one, token, network);
    for (let revision = 1; revision <= 5; revision += 1) {
      const named = await tagged({ dataDir }, network, `"${revision}"`);
      const headers = { prefer: long, 'if-none-match': named };
      const waiting = other.call('GET', `/api/networks/${network}`, { token, headers });
      // Whether the change comes before the wait or within it, the reply has it.
      expect((await enroll(one, key)).status).toBe(201);
      expect(outcome(await waiting)).toEqual(changed(revision + 1));
    }
  });

  test('once, and not before it is committed; a request that changes nothing notifies no wait', async () => {
    const wake = vi.spyOn(ChangeNotifier.prototype, 'notify');
    onTestFinished(() => wake.mockRestore());
    const { one, other, ownNotifier, network, peer } = await startReplicas();
    const reply = read(other, network, 2, long);
    await untilWaiting(other, network);
    const path = `/api/networks/${network}/peers/${peer}`;
    await one.call('PATCH', path, { token: other.token, body: { name: 'edge' } });
    await one.call('PATCH', path, { token: other.token, body: { name: 'moved', routes: ['bad'] } });
    await one.call('PATCH', path, { token: other.token, body: { name: 'moved' } });
    expect(outcome(await reply)).toEqual(changed(3));
    const callsOf = (notifier: ChangeNotifier) =>
      wake.mock.calls.filter((_, index) => wake.mock.contexts[index] === notifier);
    // The enrolment and the change; the enrolment is before the wait.
    expect(callsOf(ownNotifier)).toEqual([[network], [network]]);
    expect(callsOf(other.notifier)).toEqual([[network]]);
  });

  test('it does when the network is deleted', async () => {
    const { one, other, network } = await startReplicas();
    const reply = read(other, network, 2, long);
    await untilWaiting(other, network);
    await one.call('DELETE', `/api/networks/${network}`, { token: other.token });
    expect((await reply).status).toBe(404);
  });
});

describe('a control plane whose connection for news is lost', () => {
  test('notifies all waits once it listens again, and receives later changes', async () => {
    const { dataDir, one, other, network, key } = await startReplicas();
    const first = read(other, network, 2, long);
    await untilWaiting(other, network);
    const again = vi.spyOn(other.notifier, 'notifyAll');
    expect(await terminate(dataDir, 'listen %')).toBe(2);
    await enroll(one, key);
    // Either nothing heard of it, and all look once it listens again; or it listened again before.
    expect(outcome(await first)).toEqual(changed(3));
    await eventually('it listens again', () => again.mock.calls.length > 0);
    const second = read(other, network, 3, long);
    await untilWaiting(other, network);
    await enroll(one, key);
    expect(outcome(await second)).toEqual(changed(4));
    const messages = other.plane.log();
    expect(messages).toMatch(/"msg":"not listening for changes of other processes"/);
    expect(messages).toMatch(/"msg":"listening for changes of other processes again"/);
  });
});

test('when all connections are cut, requests under way say so and later ones go well', async () => {
  const { dataDir, one, other, network } = await startReplicas();
  const path = `/api/networks/${network}`;
  let cut = 0;
  const statuses = new Set<number>();
  for (let round = 0; round < 10; round += 1) {
    const asked = Array.from({ length: 20 }, (_, index) =>
      index % 2
        ? one.call('GET', path, { token: other.token })
        : one.call('PATCH', path, { token: other.token, body: { name: `n${round}.${index}` } }),
    );
    cut += await terminate(dataDir, '%');
    for (const { status, headers, body } of await Promise.all(asked)) {
      statuses.add(status);
      if (status === 503)
        expect([headers.get('retry-after'), body.message]).toEqual(['1', expect.stringMatching('1 s')]);
    }
  }
  expect(cut).toBeGreaterThan(0);
  expect([...statuses].filter((status) => ![200, 503, 504].includes(status))).toEqual([]);
  expect((await one.call('GET', path, { token: other.token })).status).toBe(200);
});

test('however many wait to change one network, others read and are ready', async () => {
  const { dataDir, one, other, network } = await startReplicas();
  const name = await nameOf(dataDir);
  await asSuperuser(
    server,
    async (client) => {
      await client.query('begin');
      await client.query('select from networks where id = $1 for update', [network]);
      const asked = Array.from({ length: 30 }, (_, index) =>
        one.call('PATCH', `/api/networks/${network}`, { token: other.token, body: { name: `n${index}` } }),
      );
      const waiting = `select from pg_stat_activity where datname = $1 and wait_event_type = 'Lock'`;
      const countWaiting = async () =>
        (await asSuperuser(server, (aside) => aside.query(waiting, [name]))).rowCount ?? 0;
      await eventually('they wait', async () => (await countWaiting()) >= 6);
      expect((await one.call('GET', '/readyz')).status).toBe(200);
      expect((await one.call('GET', `/api/networks/${network}`, { token: other.token })).status).toBe(200);
      await client.query('rollback');
      expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([200]));
    },
    name,
  );
});

test('two processes send each event at least once, also when one of them is killed meanwhile', async () => {
  const dataDir = makeFolder();
  const held: ServerResponse[] = [];
  const receiver = await startReceiver((response) => held.push(response));
  const flags = webhookFlags(dataDir, receiver, 'network.updated');
  const target = await startProcess(dataDir, ...flags);
  const survivor = await startProcess(dataDir, ...flags);
  const token = (await target.call('POST', '/api/auth/login', { body: owner })).body.data.access_token;
  const network = await makeNetwork(target, token);
  const rename = ({ call }: ServerProcess, name: string) =>
    call('PATCH', `/api/networks/${network}`, { token, body: { name } });
  // A process sends nothing else while the receiver keeps it waiting: the second message is of the other process.
  for (const count of [1, 2]) {
    await rename(target, `n${count}`);
    await receiver.has(count);
  }
  for (const name of ['n3', 'n4', 'n5']) await rename(target, name);
  await kill(target);
  for (const name of ['n6', 'n7', 'n8']) await rename(survivor, name);
  receiver.answer(accept);
  for (const response of held) response.writeHead(204).end();
  const deliveries = () => withDatabase(dataDir, (db) => db.selectFrom('deliveries').selectAll().execute());
  const [left] = await eventually('only what the killed one had is left', async () => {
    const rows = await deliveries();
    return rows.length === 1 && rows;
  });
  expect(left).toMatchObject({ attempts: 1 });
  // The minute passes.
  const { created_at: next_at } = left as { created_at: string };
  await withDatabase(dataDir, (db) => db.updateTable('deliveries').set({ next_at }).execute());
  await eventually('nothing is left', async () => (await deliveries()).length === 0);
  const sent = receiver.received.map(({ headers }) => headers['webhook-id']);
  expect([new Set(sent).size, sent.length]).toEqual([8, 9]);
});

describe('four processes that start at the same moment on an empty database', () => {
  test('all come up, with one owner', async () => {
    const dataDir = makeFolder();
    const emails = [1, 2, 3, 4].map((number) => `owner-${number}@example.net`);
    await databaseFor(dataDir);
    const processes = await Promise.all(emails.map((email) => startProcess(dataDir, '--owner-email', email)));
    const logins = await Promise.all(
      processes.map(({ call }, index) =>
        call('POST', '/api/auth/login', { body: { email: emails[index], password: owner.password } }),
      ),
    );
    expect(logins.map(({ status }) => status).toSorted()).toEqual([200, 401, 401, 401]);
    await withDatabase(dataDir, async (db) => {
      expect((await db.selectFrom('users').select('role').execute()).length).toBe(1);
      expect((await db.selectFrom('organizations').select('name').execute()).length).toBe(1);
    });
  });

  test('make one owner also when they are as fast as each other', async () => {
    const dataDir = makeFolder();
    await (await openPlane({ dataDir })).server.close();
    await withDatabase(dataDir, async (db) => {
      await db.deleteFrom('users').execute();
      await db.deleteFrom('organizations').execute();
    });
    const password = new Secret(owner.password);
    await Promise.all(
      [1, 2].map((number) =>
        startPlane({ dataDir, passwordCost: slowPasswords, owner: { email: `${number}@example.net`, password } }),
      ),
    );
    const count = (table: 'users' | 'organizations') =>
      withDatabase(dataDir, async (db) => (await db.selectFrom(table).select('id').execute()).length);
    expect([await count('users'), await count('organizations')]).toEqual([1, 1]);
  });

  test('they do when one of them is killed in between', async () => {
    const dataDir = makeFolder();
    await databaseFor(dataDir);
    const targets = Array.from({ length: 3 }, () => startProcess(dataDir).catch(() => null));
    const survivor = startProcess(dataDir);
    const first = (await Promise.race(targets)) as ServerProcess;
    await kill(first);
    expect((await (await survivor).call('GET', '/readyz')).status).toBe(200);
  });
});
