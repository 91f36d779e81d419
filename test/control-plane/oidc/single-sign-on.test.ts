import { expect, test } from 'vitest';
import { hour, logIn, owner, publicKey, withDatabase } from '../harness.ts';
import { begin, logInAt, openBrowser, passIssuer, path, post, redeem, visit } from './browser.ts';
import { openOffice } from './office.ts';

const audit = async (office: Awaited<ReturnType<typeof openOffice>>, token: string) =>
  (await office.plane.call('GET', '/api/audit', { token })).body.data as {
    action: string;
    details: Record<string, unknown>;
    target: { name: string | null };
  }[];

test('a user of the issuer logs in, with the role of its groups', async () => {
  const office = await openOffice();
  const { plane, provider } = office;
  provider.accounts.set('ada-1', { email: 'Ada@example.net', groups: ['staff', 'net-admins'] });
  expect((await plane.call('GET', '/api/auth/methods')).body.data).toEqual({
    password: true,
    single_sign_on: { issuer: `${provider.url}/` },
  });
  const { back, reply, headers } = await logInAt(office, 'ada-1');
  expect([back.status, back.headers.get('location')]).toEqual([303, '../../../#/single-sign-on']);
  expect(reply).toMatchObject({ status: 200, body: { data: { session_key: expect.any(String) } } });
  const me = await plane.call('GET', '/api/auth/me', { headers });
  expect(me.body.data).toMatchObject({ email: 'ada@example.net', role: 'admin' });
  const token = await logIn(plane);
  const entries = await audit(office, token);
  expect(entries.find(({ action }) => action === 'user.create')?.details).toMatchObject({
    ...{ role: 'admin', subject: 'ada-1', issuer: `${provider.url}/` },
  });
  expect(entries.filter(({ action }) => action === 'login').map(({ details }) => details.method)).toContain(
    'single_sign_on',
  );
  const { data: users } = (await plane.call('GET', '/api/users', { token })).body;
  expect(users.map(({ subject }: { subject: string }) => subject)).toEqual([null, 'ada-1']);
});

test('the subject is the user: another address is followed, and an address that was reused is another user', async () => {
  const office = await openOffice();
  const { plane, provider } = office;
  const users = async (token: string) =>
    (await plane.call('GET', '/api/users', { token })).body.data.map(
      (user: { email: string; subject: string | null }) => [user.email, user.subject],
    );
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['staff'] });
  await logInAt(office, 's1');
  provider.accounts.set('s1', { email: 'ada.byron@example.net', groups: ['staff'] });
  await logInAt(office, 's1');
  provider.accounts.set('s2', { email: 'ada@example.net', groups: ['staff'] });
  await logInAt(office, 's2');
  const token = await logIn(plane);
  expect(await users(token)).toEqual([
    [owner.email, null],
    ['ada.byron@example.net', 's1'],
    ['ada@example.net', 's2'],
  ]);
  // Taken: the user keeps its own, and its login works.
  provider.accounts.set('s2', { email: 'ada.byron@example.net', groups: ['staff'] });
  expect((await logInAt(office, 's2')).reply.status).toBe(200);
  expect((await users(token))[2]).toEqual(['ada@example.net', 's2']);
});

test('the role follows the groups at each login, and no administrator sets it', async () => {
  const office = await openOffice();
  const { plane, provider } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['net-admins'] });
  const { headers } = await logInAt(office, 's1');
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['staff'] });
  await logInAt(office, 's1');
  const me = (await plane.call('GET', '/api/auth/me', { headers })).body.data;
  expect(me.role).toBe('viewer');
  const token = await logIn(plane);
  const change = await plane.call('PATCH', `/api/users/${me.id}`, { token, body: { role: 'admin' } });
  expect([change.status, change.body.message]).toEqual([403, expect.stringContaining('groups at the issuer')]);
});

test('without a role a new user is refused, and a known one loses sessions, tokens and keys', async () => {
  const office = await openOffice();
  const { plane, provider } = office;
  provider.accounts.set('s0', { email: 'eve@example.net', groups: ['others'] });
  const refused = (await logInAt(office, 's0')).reply;
  expect([refused.status, refused.body.message]).toEqual([401, expect.stringContaining('no group of this user')]);
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['net-admins'] });
  const { headers } = await logInAt(office, 's1');
  const { data: made } = (await plane.call('POST', '/api/auth/tokens', { headers, body: { name: 'ci' } })).body;
  const network = { name: 'n', private_cidr: '10.9.0.0/24' };
  const { id } = (await plane.call('POST', '/api/networks', { headers, body: network })).body.data;
  const newKey = { name: 'k', max_uses: 1, expires_in_hours: 1 };
  await plane.call('POST', `/api/networks/${id}/enrollment-keys`, { headers, body: newKey });
  provider.accounts.set('s1', { email: 'ada@example.net', groups: [] });
  expect((await logInAt(office, 's1')).reply.status).toBe(401);
  expect((await plane.call('GET', '/api/auth/me', { headers })).status).toBe(401);
  expect((await plane.call('GET', '/api/auth/me', { token: made.access_token })).status).toBe(401);
  const token = await logIn(plane);
  expect((await plane.call('GET', `/api/networks/${id}/enrollment-keys`, { token })).body.data).toEqual([]);
  const entries = await audit(office, token);
  expect(entries.find(({ action }) => action === 'login.end')?.details).toMatchObject({
    ...{ reason: 'no_role', sessions_ended: 1, tokens_revoked: [{ name: 'ci' }] },
  });
});

test('the last owner stays one, whatever its groups', async () => {
  const office = await openOffice();
  const { plane, provider } = office;
  const token = await logIn(plane);
  const { id } = (await plane.call('GET', '/api/auth/me', { token })).body.data;
  expect((await plane.call('PUT', `/api/users/${id}/link`, { token, body: { subject: 's1' } })).status).toBe(200);
  for (const groups of [['staff'], []]) {
    provider.accounts.set('s1', { email: owner.email, groups });
    const { headers } = await logInAt(office, 's1');
    expect((await plane.call('GET', '/api/auth/me', { headers })).body.data.role).toBe('owner');
  }
});

test('a local user is linked by an owner, who finds the subject in the audit', async () => {
  const office = await openOffice();
  const { plane, provider } = office;
  const token = await logIn(plane);
  const local = { email: 'ada@example.net', password: 'a password of length', role: 'member' };
  const { id } = (await plane.call('POST', '/api/users', { token, body: local })).body.data;
  provider.accounts.set('s1', { email: local.email, groups: ['net-admins'] });
  const { reply } = await logInAt(office, 's1');
  expect([reply.status, reply.body.message]).toEqual([401, expect.stringContaining('cpn user link')]);
  const refusal = (await audit(office, token)).find(({ action }) => action === 'login.refused');
  expect(refusal).toMatchObject({ target: { name: local.email }, details: { subject: 's1' } });
  const link = (body: object, as = token) => plane.call('PUT', `/api/users/${id}/link`, { token: as, body });
  expect((await link({ subject: 's1' }, await plane.signIn('admin'))).status).toBe(403);
  expect((await link({ subject: 's1' })).status).toBe(200);
  expect((await link({ subject: 's2' })).status).toBe(422);
  // From now on its groups decide.
  const byPassword = await plane.call('POST', '/api/auth/login', { body: local });
  expect([byPassword.status, byPassword.body.message]).toEqual([403, expect.stringContaining('linked to the issuer')]);
  const { headers } = await logInAt(office, 's1');
  expect((await plane.call('GET', '/api/auth/me', { headers })).body.data).toMatchObject({ id, role: 'admin' });
  // Another user must not get the same subject.
  const other = { ...local, email: 'bob@example.net' };
  const { id: second } = (await plane.call('POST', '/api/users', { token, body: other })).body.data;
  const taken = await plane.call('PUT', `/api/users/${second}/link`, { token, body: { subject: 's1' } });
  expect([taken.status, taken.body.errors]).toEqual([422, { subject: [expect.stringContaining('another user')] }]);
  expect((await plane.call('DELETE', `/api/users/${id}/link`, { token })).status).toBe(200);
  expect((await plane.call('GET', '/api/auth/me', { headers })).status).toBe(401);
  const password = { email: local.email, password: local.password };
  expect((await plane.call('POST', '/api/auth/login', { body: password })).status).toBe(200);
});

test('an old login or a personal token does not link a user, and a user without a password stays linked', async () => {
  const office = await openOffice();
  const { plane, provider, advance } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['staff'] });
  await logInAt(office, 's1');
  const token = await logIn(plane);
  const { data: users } = (await plane.call('GET', '/api/users', { token })).body;
  const ada = users.find(({ subject }: { subject: string }) => subject === 's1');
  const unlinked = await plane.call('DELETE', `/api/users/${ada.id}/link`, { token });
  expect([unlinked.status, unlinked.body.message]).toEqual([403, expect.stringContaining('no password')]);
  const { data: made } = (await plane.call('POST', '/api/auth/tokens', { token, body: { name: 'ci' } })).body;
  const link = { token: made.access_token, body: { subject: 's9' } };
  expect((await plane.call('PUT', `/api/users/${users[0].id}/link`, link)).status).toBe(403);
  advance(6 * 60_000);
  expect((await plane.call('PUT', `/api/users/${users[0].id}/link`, { ...link, token })).status).toBe(422);
  const proven = { subject: 's9', current_password: owner.password };
  expect((await plane.call('PUT', `/api/users/${users[0].id}/link`, { token, body: proven })).status).toBe(200);
});

test('an answer counts in the browser that asked for it, once, and for ten minutes', async () => {
  const office = await openOffice();
  const { plane, provider, advance } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['staff'] });
  provider.subject = 's1';
  const mine = openBrowser();
  const callback = await passIssuer(mine, plane, await begin(mine, plane));
  // A stranger's link must not log this browser in as the stranger.
  const other = openBrowser();
  await begin(other, plane);
  expect((await visit(other, callback)).status).toBe(303);
  expect((await redeem(other, plane)).status).toBe(401);
  expect((await visit(openBrowser(), callback)).status).toBe(303);
  // Nor is the answer lost to its own browser by that.
  await visit(mine, callback);
  const copy = { cookies: new Map([...mine.cookies].map(([origin, own]) => [origin, new Map(own)])) };
  expect((await redeem(mine, plane)).status).toBe(200);
  await visit(copy, callback);
  expect((await redeem(copy, plane)).status).toBe(401);
  // After ten minutes.
  const late = openBrowser();
  const lateCallback = await passIssuer(late, plane, await begin(late, plane));
  advance(10 * 60_000 + 1000);
  await visit(late, lateCallback);
  expect((await redeem(late, plane)).status).toBe(401);
});

test('the begin and the end need a page of this origin, and the cookie is out of reach of scripts', async () => {
  const { plane, provider } = await openOffice();
  const send = (to: string, headers: Record<string, string>) =>
    plane.call('POST', to, { headers, body: { session_cookie: '/' } });
  for (const to of [path, `${path}/session`]) {
    for (const headers of [{}, { origin: provider.url }, { origin: 'null' }, { 'sec-fetch-site': 'cross-site' }]) {
      expect((await send(to, headers as Record<string, string>)).status).toBe(403);
    }
  }
  const { headers } = await send(path, { origin: plane.url });
  expect(headers.get('set-cookie')).toMatch(
    /^cpn_login=[\w-]{43}; Expires=.*; Path=\/api\/auth\/single-sign-on; HttpOnly; SameSite=Lax$/,
  );
});

test('nothing of a login is in the log', async () => {
  const office = await openOffice();
  office.provider.accounts.set('s1', { email: 'ada@example.net', groups: ['staff'] });
  const { callback, browser } = await logInAt(office, 's1');
  const { searchParams } = new URL(callback);
  const secrets = [
    searchParams.get('code'),
    searchParams.get('state'),
    ...(browser.cookies.get(office.plane.url)?.values() ?? []),
  ];
  expect(secrets.filter(Boolean).length).toBeGreaterThan(2);
  for (const secret of secrets) expect(office.plane.log()).not.toContain(secret);
});

test('an address has a limited number of logins that did not end: another one takes the place of the oldest', async () => {
  const { plane, provider } = await openOffice();
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['staff'] });
  provider.subject = 's1';
  const [first, second] = [openBrowser(), openBrowser()];
  const callbacks = [
    await passIssuer(first, plane, await begin(first, plane)),
    await passIssuer(second, plane, await begin(second, plane)),
  ];
  for (let count = 0; count < 99; count += 1) await begin(openBrowser(), plane);
  await visit(first, callbacks[0] ?? '');
  await visit(second, callbacks[1] ?? '');
  expect([(await redeem(first, plane)).status, (await redeem(second, plane)).status]).toEqual([401, 200]);
});

test('two windows of a browser log in at once', async () => {
  const { plane, provider } = await openOffice();
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['staff'] });
  provider.subject = 's1';
  const browser = openBrowser();
  for (const url of [await begin(browser, plane), await begin(browser, plane)]) {
    await visit(browser, await passIssuer(browser, plane, url));
    const { status, body } = await redeem(browser, plane);
    expect([status, body.message]).toEqual([200, undefined]);
  }
});

test('an issuer that is down is named, and what it did not end stays', async () => {
  const office = await openOffice();
  const { plane, provider } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['staff'] });
  await provider.stop();
  const down = await post(openBrowser(), plane, path, { session_cookie: '/' });
  const { message } = (await down.json()) as { message: string };
  expect([down.status, message]).toEqual([503, expect.stringContaining(new URL(provider.url).host)]);
  await provider.start();
  const browser = openBrowser();
  provider.subject = 's1';
  const callback = await passIssuer(browser, plane, await begin(browser, plane));
  await provider.stop();
  await visit(browser, callback);
  const reply = await redeem(browser, plane);
  expect([reply.status, reply.body.message]).toEqual([401, expect.stringContaining('does not answer')]);
});

test('personal tokens work for some days after the last login of their user at the issuer', async () => {
  const office = await openOffice({ settings: { tokenMaxAgeMs: 48 * hour } });
  const { plane, provider, advance } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['staff'] });
  const { headers } = await logInAt(office, 's1');
  const { data: made } = (await plane.call('POST', '/api/auth/tokens', { headers, body: { name: 'ci' } })).body;
  const local = (await plane.call('POST', '/api/auth/tokens', { token: await logIn(plane), body: { name: 'ci' } })).body
    .data;
  const me = (token: string) => plane.call('GET', '/api/auth/me', { token });
  advance(47 * hour);
  expect((await me(made.access_token)).status).toBe(200);
  advance(2 * hour);
  const refused = await me(made.access_token);
  expect([refused.status, refused.body.message]).toEqual([401, expect.stringContaining('2 days after a login')]);
  expect((await me(local.access_token)).status).toBe(200);
  await logInAt(office, 's1');
  expect((await me(made.access_token)).status).toBe(200);
});

test('the organization is the one that a claim names; an owner founds it', async () => {
  const office = await openOffice({ settings: { organizationClaim: 'organization' } });
  const { plane, provider } = office;
  provider.accounts.set('s0', { email: 'a@example.net', groups: ['staff'], organization: 'acme' });
  const early = (await logInAt(office, 's0')).reply;
  expect([early.status, early.body.message]).toEqual([
    401,
    expect.stringContaining('first login must be that of an owner'),
  ]);
  provider.accounts.set('s1', { email: 'b@example.net', groups: ['bosses'], organization: 'acme' });
  const { headers } = await logInAt(office, 's1');
  const me = async (of: Record<string, string>) => (await plane.call('GET', '/api/auth/me', { headers: of })).body.data;
  const acme = (await me(headers)).organization;
  expect(acme.name).toBe('acme');
  expect((await me((await logInAt(office, 's0')).headers)).organization).toEqual(acme);
  // A user of one organization never becomes one of another.
  provider.accounts.set('s0', { email: 'a@example.net', groups: ['bosses'], organization: 'default' });
  expect((await logInAt(office, 's0')).reply.status).toBe(401);
  provider.accounts.set('s0', { email: 'a@example.net', groups: ['bosses'] });
  expect((await logInAt(office, 's0')).reply.status).toBe(401);
});

test('with passwords off, a reset owner alone logs in with one, on this host', async () => {
  const office = await openOffice({ allowsPasswords: false });
  const { plane } = office;
  const logs = (headers: Record<string, string> = {}) =>
    plane.call('POST', '/api/auth/login', { body: owner, headers }).then(({ status }) => status);
  expect((await plane.call('GET', '/api/auth/methods')).body.data.password).toBe(false);
  expect(await logs()).toBe(403);
  await withDatabase(plane.dataDir, (db) =>
    db
      .updateTable('users')
      .set({ reset_at: plane.clock.now().toISOString() })
      .where('email', '=', owner.email)
      .execute(),
  );
  expect(await logs()).toBe(200);
  // A proxy on this host would admit every client.
  for (const header of ['x-forwarded-for', 'forwarded', 'via']) expect(await logs({ [header]: '192.0.2.1' })).toBe(403);
  const reset = await plane.call('POST', '/api/auth/login', { body: owner }).then(({ body }) => body.data.access_token);
  const user = { email: 'ada@example.net', password: 'a password of length', role: 'viewer' };
  const made = await plane.call('POST', '/api/users', { token: reset, body: user });
  expect([made.status, made.body.message]).toEqual([403, expect.stringContaining('logins with a password are off')]);
  const wrong = { email: owner.email, password: 'something else here' };
  expect((await plane.call('POST', '/api/auth/login', { body: wrong })).status).toBe(401);
});

test('own devices are suspended when the groups lose the role for them', async () => {
  const office = await openOffice();
  const { plane, provider } = office;
  provider.accounts.set('s1', { email: 'ada@example.net', groups: ['staff'] });
  const token = await logIn(plane);
  const network = { name: 'n', private_cidr: '10.9.0.0/24' };
  const { id } = (await plane.call('POST', '/api/networks', { token, body: network })).body.data;
  const self_enroll = { roles: ['viewer'], limit: 3, reauth_hours: null };
  await plane.call('PATCH', `/api/networks/${id}`, { token, body: { self_enroll } });
  const { headers } = await logInAt(office, 's1');
  const made = await plane.call('POST', `/api/networks/${id}/own-devices`, { headers, body: {} });
  const fields = { enrollment_token: made.body.data.enrollment_token, name: 'laptop', public_key: publicKey() };
  const enrolled = await plane.call('POST', '/api/networks/enroll', { body: { ...fields, peer_type: 'admin_device' } });
  expect([made.status, enrolled.status]).toEqual([201, 201]);
  provider.accounts.set('s1', { email: 'ada@example.net', groups: [] });
  expect((await logInAt(office, 's1')).reply.status).toBe(401);
  const { data } = (await plane.call('GET', `/api/networks/${id}/peers`, { token })).body;
  expect(data.map((peer: { suspended_at?: string | null }) => typeof peer.suspended_at)).toEqual(['string']);
});
