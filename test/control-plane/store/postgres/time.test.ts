import { expect, test } from 'vitest';
import { databaseFor, postgres } from '../../databases.ts';
import { hour, makeFolder, makeNetwork, owner, startPlane } from '../../harness.ts';
import { asSuperuser } from '../../postgres-server.ts';

if (postgres === null) throw new Error('these tests are for PostgreSQL');
const server = postgres;
const year = 365 * 24 * hour;

test("the audit, keys and sessions have the database's time, whatever the clock of the process says", async () => {
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
  const login = await plane.call('POST', '/api/auth/login', { body: owner });
  const token = login.body.data.access_token;
  const network = await makeNetwork(plane, token);
  const { body } = await plane.call('GET', '/api/audit', { token });
  expect(body.data.map(({ action }: { action: string }) => action)).toEqual(['network.create', 'login', 'user.create']);
  const later = Date.now() + 9 * year;
  for (const { at } of body.data) expect(new Date(at).getTime()).toBeGreaterThan(later);
  const key = await plane.call('POST', `/api/networks/${network}/enrollment-keys`, {
    token,
    body: { name: 'soon', max_uses: 1, expires_in_hours: 1 },
  });
  expect(Date.parse(key.body.data.expires_at)).toBeGreaterThan(later);
  // A login is recent by the same clock.
  expect((await plane.call('POST', '/api/auth/tokens', { token, body: { name: 'ci' } })).status).toBe(201);
  expect((await plane.call('GET', '/api/auth/me', { token })).status).toBe(200);
  expect(plane.log()).toMatch(/"seconds":-31\d{7},"msg":"the clock of this machine differs from that of the database/);
});
