import { expect, test } from 'vitest';
import { databaseFor, postgres } from '../../databases.ts';
import { hour, makeFolder, makeNetwork, startPlane } from '../../harness.ts';
import { asSuperuser } from '../../postgres-server.ts';

if (postgres === null) throw new Error('these tests are for PostgreSQL');
const server = postgres;
const year = 365 * 24 * hour;

test("the audit has the database's time, whatever the clock of the process says", async () => {
  const dataDir = makeFolder();
  const name = new URL((await databaseFor(dataDir))?.reveal() ?? '').pathname.slice(1);
  await asSuperuser(
    server,
    async (client) => {
      await client.query(`create function public.clock_timestamp() returns timestamptz language sql
        as $$ select pg_catalog.clock_timestamp() + interval '3650 days' $$`);
      await client.query(`alter database ${name} set search_path = public, pg_catalog`);
    },
    name,
  );
  const plane = await startPlane({ dataDir, now: undefined });
  const token = await plane.signIn('owner');
  await makeNetwork(plane, token);
  const { body } = await plane.call('GET', '/api/audit', { token });
  expect(body.data.map(({ action }: { action: string }) => action)).toEqual(['network.create', 'user.create']);
  for (const { at } of body.data) expect(new Date(at).getTime()).toBeGreaterThan(Date.now() + 9 * year);
});
