import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../lab/eventually.ts';
import { postgres, withDatabase } from '../databases.ts';
import { closePlane, hour, logIn, openPlane, publicKey } from '../harness.ts';
import { logInAt, settingsFor } from './browser.ts';
import { openOffice } from './office.ts';

const minutes = 60_000;
const groups = ['net-admins'];

const tokenRequests = (requests: readonly string[]) => requests.filter((each) => each === 'POST /token').length;

test('a user that the issuer removes loses its session within five minutes', async () => {
  const office = await openOffice();
  const { plane, provider, advance } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups });
  provider.accounts.set('s2', { email: 'bob@example.net', groups });
  const ada = await logInAt(office, 's1');
  const bob = await logInAt(office, 's2');
  const me = (headers: Record<string, string>) => plane.call('GET', '/api/auth/me', { headers });
  provider.accounts.delete('s1');
  expect((await me(ada.headers)).status).toBe(200);
  advance(5 * minutes);
  await eventually('the session ends', async () => (await me(ada.headers)).status === 401);
  expect((await me(bob.headers)).status).toBe(200);
  const { data } = (await plane.call('GET', '/api/audit', { token: await logIn(plane) })).body;
  expect(data.find(({ action }: { action: string }) => action === 'login.end').details.reason).toBe('issuer');
});

test('an issuer that is down for an hour ends nothing, and is asked again after it', async () => {
  const office = await openOffice();
  const { plane, provider, advance } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups });
  const { headers } = await logInAt(office, 's1');
  await provider.stop();
  for (let each = 0; each < 12; each += 1) {
    advance(5 * minutes);
    await eventually('the failure is logged', async () => plane.log().includes('sessions stay open'));
    expect((await plane.call('GET', '/api/auth/me', { headers })).status).toBe(200);
  }
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['staff'] });
  await provider.start();
  advance(5 * minutes);
  await eventually('the groups are read', async () => {
    return (await plane.call('GET', '/api/auth/me', { headers })).body.data.role === 'viewer';
  });
});

test('refresh tokens follow each other, and are stored encrypted', async () => {
  const office = await openOffice();
  const { plane, provider, advance } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups });
  const { headers } = await logInAt(office, 's1');
  for (let round = 1; round <= 3; round += 1) {
    advance(5 * minutes);
    await eventually('a refresh', async () => tokenRequests(provider.requests) === 1 + round);
  }
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['staff'] });
  advance(5 * minutes);
  await eventually('the last token is valid', async () => {
    return (await plane.call('GET', '/api/auth/me', { headers })).body.data.role === 'viewer';
  });
});

test.runIf(postgres)('two processes on a database ask once', async () => {
  const office = await openOffice();
  const { plane, provider, advance } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups });
  await logInAt(office, 's1');
  let ahead = 0;
  const second = await openPlane({
    ...{ dataDir: plane.dataDir, owner: null, oidc: settingsFor(provider.url), refreshPauseMs: 20 },
    ...{
      now: () => new Date(Date.now() + ahead),
      steadyNow: () => Date.now() + ahead,
      publicUrls: [new URL('http://127.0.0.1/')],
    },
  });
  onTestFinished(() => closePlane(second));
  advance(5 * minutes);
  ahead = 5 * minutes;
  await eventually('a refresh', async () => tokenRequests(provider.requests) > 1);
  // Both have looked several times since.
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(tokenRequests(provider.requests)).toBe(2);
});

test('a changed client secret ends no session: its limits do', async () => {
  const office = await openOffice();
  const { plane, provider, advance } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups });
  const { headers } = await logInAt(office, 's1');
  await withDatabase(plane.dataDir, (db) =>
    db.updateTable('issuer_sessions').set({ refresh_token: 'sealed by another key' }).execute(),
  );
  advance(5 * minutes);
  await eventually('it is given up', () =>
    withDatabase(plane.dataDir, async (db) => {
      const { refresh_token } = await db
        .selectFrom('issuer_sessions')
        .select('refresh_token')
        .executeTakeFirstOrThrow();
      return refresh_token === null;
    }),
  );
  expect((await plane.call('GET', '/api/auth/me', { headers })).status).toBe(200);
  advance(8 * 24 * hour);
  expect((await plane.call('GET', '/api/auth/me', { headers })).status).toBe(401);
});

test('own devices that logins keep stay while the issuer is down, and only then', async () => {
  const office = await openOffice();
  const { plane, provider, advance } = office;
  const token = await logIn(plane);
  const network = { name: 'n', private_cidr: '10.9.0.0/24' };
  const { id } = (await plane.call('POST', '/api/networks', { token, body: network })).body.data;
  const self_enroll = { roles: ['admin'], limit: 3, reauth_hours: 1 };
  await plane.call('PATCH', `/api/networks/${id}`, { token, body: { self_enroll } });
  provider.accounts.set('s1', { email: 'ada@example.net', groups });
  const { headers } = await logInAt(office, 's1');
  const made = await plane.call('POST', `/api/networks/${id}/own-devices`, { headers, body: {} });
  const fields = { enrollment_token: made.body.data.enrollment_token, name: 'laptop', public_key: publicKey() };
  await plane.call('POST', '/api/networks/enroll', { body: { ...fields, peer_type: 'admin_device' } });
  const expiry = async () =>
    (await plane.call('GET', `/api/networks/${id}/peers`, { token })).body.data[0].expires_at as string;
  const first = await expiry();
  advance(5 * minutes);
  await eventually('a refresh', async () => tokenRequests(provider.requests) === 2);
  expect(await expiry()).toBe(first);
  await provider.stop();
  advance(5 * minutes);
  await eventually('the expiry moves', async () => (await expiry()) > first);
});
