import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { UnusableDatabase } from '../../../../src/control-plane/errors.ts';
import { ChangeNotifier } from '../../../../src/control-plane/push/change-notifier.ts';
import { Secret } from '../../../../src/core/crypto/secret.ts';
import { eventually } from '../../../lab/eventually.ts';
import { databaseFor, postgres } from '../../databases.ts';
import { enroll, makeFolder, openPlane, startPlane } from '../../harness.ts';
import { asSuperuser } from '../../postgres-server.ts';
import { changed, long, makeOffice, outcome, read, untilWaiting } from '../../push/long-poll.ts';

if (postgres === null) throw new Error('these tests are for PostgreSQL');
const server = postgres;

/** PgBouncer refuses to run as root. */
const unprivileged = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

type PoolMode = 'session' | 'transaction';

/** Debian's PgBouncer in front of the server. */
async function startPgBouncer(mode: PoolMode) {
  const folder = makeFolder();
  chownSync(folder, unprivileged.uid ?? -1, unprivileged.gid ?? -1);
  const port = await findFreePort();
  const file = join(folder, 'pgbouncer.ini');
  const write = (next: PoolMode) =>
    writeFileSync(
      file,
      `[databases]
* = host=${server.socket} port=${server.port} user=${server.user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${next}
default_pool_size = 60
`,
    );
  write(mode);
  const child = spawn('/usr/sbin/pgbouncer', [file], {
    ...unprivileged,
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => end(child));
  const said: string[] = [];
  await new Promise<void>((resolve, reject) => {
    createInterface(child.stderr).on('line', (line) => {
      said.push(line);
      if (line.includes('process up')) resolve();
    });
    child.once('error', reject);
    child.once('exit', () => reject(new Error(`PgBouncer did not start:\n${said.join('\n')}`)));
  });
  return {
    url: (database: string) => new Secret(`postgres://${server.user}@127.0.0.1:${port}/${database}`),
    async change(next: PoolMode) {
      write(next);
      const before = said.length;
      child.kill('SIGHUP');
      await eventually('it has read its settings again', () => said.slice(before).some((line) => /HUP/i.test(line)));
    },
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

async function findFreePort(): Promise<number> {
  const listening = createServer().listen(0, '127.0.0.1');
  await once(listening, 'listening');
  const { port } = listening.address() as { port: number };
  listening.close();
  await once(listening, 'close');
  return port;
}

const nameOf = async (dataDir: string) => new URL((await databaseFor(dataDir))?.reveal() ?? '').pathname.slice(1);

test('a pooler in transaction mode is refused at the start, with the reason and the remedy', async () => {
  const pooler = await startPgBouncer('transaction');
  const refused = openPlane({ database: pooler.url(await nameOf(makeFolder())) });
  await expect(refused).rejects.toThrow(UnusableDatabase);
  await expect(refused).rejects.toThrow(
    /notifications do not arrive .*transaction mode.*PostgreSQL itself.*session mode/,
  );
  // Exit code 2: the unit does not start it again.
  await expect(refused).rejects.toMatchObject({ isRetryable: false });
});

test('a pooler in session mode delivers changes; once it shares connections, the control plane is not ready', async () => {
  const pooler = await startPgBouncer('session');
  const dataDir = makeFolder();
  const name = await nameOf(dataDir);
  const one = await startPlane({ dataDir, database: pooler.url(name) });
  const notifier = new ChangeNotifier();
  const plane = await startPlane({ dataDir, database: pooler.url(name), notifier });
  const token = await one.signIn('owner');
  const { network, key } = await makeOffice({ plane: one, token });
  const reply = read({ plane, notifier, token }, network, 2, long);
  await untilWaiting({ plane, notifier, token }, network);
  await enroll(one, key);
  expect(outcome(await reply)).toEqual(changed(3));
  expect((await plane.call('GET', '/readyz')).status).toBe(200);

  await pooler.change('transaction');
  // A connection that listens already stays with its client.
  const cut = `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and query like 'listen %'`;
  await asSuperuser(server, (client) => client.query(cut, [name]));
  await eventually('the listener is lost', async () => {
    const { status, body } = await plane.call('GET', '/readyz');
    return status === 503 && /^listener lost: changes of other processes do not arrive/.test(body.message);
  });
  await eventually('the reason is logged', () => /"reason":"notifications do not arrive/.test(plane.log()));
});
