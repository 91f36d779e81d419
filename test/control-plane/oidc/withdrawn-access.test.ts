import { expect, test } from 'vitest';
import { eventually } from '../../lab/eventually.ts';
import { withDatabase } from '../databases.ts';
import { hour, logIn, owner } from '../harness.ts';
import { begin, logInAt, openBrowser, passIssuer, redeem, visit } from './browser.ts';
import { type Office, openOffice } from './office.ts';

const minutes = 60_000;
const groups = ['net-admins'];
const statusOf = ({ plane }: Office, request: object) =>
  plane.call('GET', '/api/auth/me', request).then(({ status }) => status);
const makeToken = async ({ plane }: Office, headers: Record<string, string>) =>
  (await plane.call('POST', '/api/auth/tokens', { headers, body: { name: 'ci' } })).body.data.access_token as string;

test('a session that the issuer cannot renew ends a day after the last confirmation', async () => {
  const office = await openOffice();
  const { provider, advance } = office;
  provider.givesRefreshTokens = false;
  provider.accounts.set('s1', { email: 'ada@example.net', groups });
  const { headers } = await logInAt(office, 's1');
  for (let step = 0; step < 23; step += 1) {
    advance(hour);
    expect(await statusOf(office, { headers })).toBe(200);
  }
  advance(2 * hour);
  expect(await statusOf(office, { headers })).toBe(401);
  expect(await statusOf(office, { token: await logIn(office.plane) })).toBe(200);
});

test('with a removed user its sessions without a refresh token end too', async () => {
  const office = await openOffice();
  const { plane, provider, advance } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups });
  const [one, two] = [await logInAt(office, 's1'), await logInAt(office, 's1')];
  // As the session of "cpn login", which a page approved.
  await withDatabase(plane.dataDir, (db) => db.deleteFrom('issuer_sessions').where('session_id', '=', 1).execute());
  provider.accounts.delete('s1');
  advance(5 * minutes);
  await eventually('both end', async () => {
    return (await statusOf(office, one)) === 401 && (await statusOf(office, two)) === 401;
  });
});

test.each([
  ['no e-mail address and no groups', { groups: [] }],
  ['an invalid e-mail address and no groups', { email: 'no address', groups: [] }],
  ['another organization', { email: 'ada@example.net', groups, organization: 'elsewhere' }],
  ['no organization', { email: 'ada@example.net', groups }],
])('%s at a refresh ends sessions and tokens', async (_, account) => {
  const office = await openOffice({ settings: { organizationClaim: 'organization' } });
  const { provider, advance } = office;
  provider.accounts.set('s0', { email: 'boss@example.net', groups: ['bosses'], organization: 'acme' });
  await logInAt(office, 's0');
  provider.accounts.set('s1', { email: 'ada@example.net', groups, organization: 'acme' });
  const { headers } = await logInAt(office, 's1');
  const token = await makeToken(office, headers);
  provider.accounts.set('s1', account);
  advance(5 * minutes);
  await eventually('both end', async () => {
    return (await statusOf(office, { headers })) === 401 && (await statusOf(office, { token })) === 401;
  });
});

test('groups that are not stated end a session, and revoke nothing', async () => {
  const office = await openOffice();
  const { provider, advance } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups });
  const { headers } = await logInAt(office, 's1');
  const token = await makeToken(office, headers);
  provider.accounts.set('s1', { email: 'ada@example.net' });
  advance(5 * minutes);
  await eventually('the session ends', async () => (await statusOf(office, { headers })) === 401);
  const { reply } = await logInAt(office, 's1');
  expect([reply.status, reply.body.message]).toEqual([401, expect.stringContaining('--oidc-groups-claim')]);
  expect(await statusOf(office, { token })).toBe(200);
});

test('the last of several owners that lose their groups stays one', async () => {
  const office = await openOffice();
  const { plane, provider } = office;
  for (const subject of ['s1', 's2'])
    provider.accounts.set(subject, { email: `${subject}@example.net`, groups: ['bosses'] });
  const { headers } = await logInAt(office, 's1');
  await logInAt(office, 's2');
  const users = (await plane.call('GET', '/api/users', { headers })).body.data as { id: number; email: string }[];
  const local = users.find(({ email }) => email === owner.email);
  expect((await plane.call('DELETE', `/api/users/${local?.id}`, { headers })).status).toBe(200);
  for (const subject of ['s1', 's2']) provider.accounts.set(subject, { email: `${subject}@example.net`, groups: [] });
  const replies = [await logInAt(office, 's1'), await logInAt(office, 's2')];
  expect(replies.map(({ reply }) => reply.status)).toEqual([401, 200]);
  const me = await plane.call('GET', '/api/auth/me', { headers: replies[1]?.headers ?? {} });
  expect(me.body.data.role).toBe('owner');
});

test('a login that waits for its page ends with the sessions of its user', async () => {
  const office = await openOffice();
  const { plane, provider } = office;
  const root = await logIn(plane);
  provider.accounts.set('s1', { email: 'ada@example.net', groups });
  provider.subject = 's1';
  const wait = async () => {
    const browser = openBrowser();
    await visit(browser, await passIssuer(browser, plane, await begin(browser, plane)));
    return browser;
  };
  const first = await wait();
  const users = (await plane.call('GET', '/api/users', { token: root })).body.data as { id: number; email: string }[];
  const ada = users.find(({ email }) => email === 'ada@example.net')?.id;
  await plane.call('DELETE', `/api/users/${ada}/sessions`, { token: root });
  expect((await redeem(first, plane)).status).toBe(401);
  const second = await wait();
  await provider.sendLogout('s1');
  expect((await redeem(second, plane)).status).toBe(401);
  const third = await wait();
  provider.accounts.set('s1', { email: 'ada@example.net', groups: [] });
  await logInAt(office, 's1');
  expect((await redeem(third, plane)).status).toBe(401);
});

test('the subject of a mistaken link opens no session after the correction', async () => {
  const office = await openOffice();
  const { plane, provider } = office;
  const token = await logIn(plane);
  const local = { email: 'ada@example.net', password: 'a password of length', role: 'member' };
  const { id } = (await plane.call('POST', '/api/users', { token, body: local })).body.data;
  const link = (subject: string) => plane.call('PUT', `/api/users/${id}/link`, { token, body: { subject } });
  await link('eve');
  provider.accounts.set('eve', { email: 'eve@example.net', groups });
  provider.subject = 'eve';
  const browser = openBrowser();
  await visit(browser, await passIssuer(browser, plane, await begin(browser, plane)));
  await plane.call('DELETE', `/api/users/${id}/link`, { token });
  await link('ada');
  expect((await redeem(browser, plane)).status).toBe(401);
});

test('a refresh token that was replaced is stored also if the issuer then fails', async () => {
  const office = await openOffice();
  const { provider, advance } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups });
  const { headers } = await logInAt(office, 's1');
  // Its claims are then those of the userinfo endpoint, which fails.
  provider.accounts.set('s1', { email: 'ada@example.net' });
  provider.failing.add('/me');
  const asked = () => provider.requests.filter((each) => each === 'POST /token').length;
  advance(5 * minutes);
  await eventually('a refresh', async () => asked() === 2);
  provider.failing.clear();
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['staff'] });
  advance(5 * minutes);
  await eventually('the next one', async () => {
    return (await office.plane.call('GET', '/api/auth/me', { headers })).body.data?.role === 'viewer';
  });
});

test('a user without a password has to log in again', async () => {
  const office = await openOffice();
  const { plane, provider, advance } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups });
  const { headers } = await logInAt(office, 's1');
  advance(6 * minutes);
  const { status, body } = await plane.call('POST', '/api/auth/tokens', { headers, body: { name: 'ci' } });
  expect([status, body.message]).toEqual([403, expect.stringContaining('log in again')]);
});

test('first logins at once make one user, and one organization', async () => {
  const office = await openOffice({ settings: { organizationClaim: 'organization' } });
  const { plane, provider } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['bosses'], organization: 'acme' });
  provider.subject = 's1';
  const browsers = [openBrowser(), openBrowser(), openBrowser(), openBrowser()];
  const callbacks: string[] = [];
  for (const browser of browsers) callbacks.push(await passIssuer(browser, plane, await begin(browser, plane)));
  await Promise.all(browsers.map((browser, index) => visit(browser, callbacks[index] ?? '')));
  const replies = await Promise.all(browsers.map((browser) => redeem(browser, plane)));
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const names = await withDatabase(plane.dataDir, (db) => db.selectFrom('organizations').select('name').execute());
  expect(names.map(({ name }) => name)).toEqual(['default', 'acme']);
});
