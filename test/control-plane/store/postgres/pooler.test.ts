import { expect, onTestFinished, test } from 'vitest';
import { UnusableDatabase } from '../../../../src/control-plane/errors.ts';
import { ChangeNotifier } from '../../../../src/control-plane/push/change-notifier.ts';
import { Secret } from '../../../../src/core/crypto/secret.ts';
import { eventually } from '../../../lab/eventually.ts';
import { databaseFor, postgres } from '../../databases.ts';
import { enroll, makeFolder, openPlane, startPlane } from '../../harness.ts';
import { type PgBouncer, type PoolMode, startPgBouncer } from '../../pgbouncer.ts';
import { asSuperuser } from '../../postgres-server.ts';
import { changed, long, makeOffice, outcome, read, untilWaiting } from '../../push/long-poll.ts';

if (postgres === null) throw new Error('these tests are for PostgreSQL');
const server = postgres;

async function startPooler(mode: PoolMode): Promise<PgBouncer> {
  const pooler = await startPgBouncer(server, mode);
  onTestFinished(() => pooler.remove());
  return pooler;
}

const nameOf = async (dataDir: string) => new URL((await databaseFor(dataDir))?.reveal() ?? '').pathname.slice(1);

test('a pooler in transaction mode is refused at the start, with the reason and the remedy', async () => {
  const pooler = await startPooler('transaction');
  const refused = openPlane({ database: new Secret(pooler.url(await nameOf(makeFolder()))) });
  await expect(refused).rejects.toThrow(UnusableDatabase);
  await expect(refused).rejects.toThrow(
    /notifications do not arrive .*transaction mode.*PostgreSQL itself.*session mode/,
  );
  // Exit code 2: the unit does not start it again.
  await expect(refused).rejects.toMatchObject({ isRetryable: false });
});

test('a pooler in session mode delivers changes; once it shares connections, the control plane is not ready', async () => {
  const pooler = await startPooler('session');
  const dataDir = makeFolder();
  const name = await nameOf(dataDir);
  const one = await startPlane({ dataDir, database: new Secret(pooler.url(name)) });
  const notifier = new ChangeNotifier();
  const plane = await startPlane({ dataDir, database: new Secret(pooler.url(name)), notifier });
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
