import { afterAll, beforeAll, expect, test } from 'vitest';
import { clampInstants } from '../../../../src/control-plane/store/clamp-instants.ts';
import { closePlane, hour, openPlane, owner, type Plane, startPlane, withDatabase } from '../../harness.ts';

let plane: Plane;
beforeAll(async () => {
  plane = await openPlane();
});
afterAll(() => closePlane(plane));

const tokens = '/api/auth/tokens';
const create = (session: string, fields: object = {}) =>
  plane.call('POST', tokens, { token: session, body: { name: 'ci', ...fields } });
const revoke = (token: string, id: number) => plane.call('DELETE', `${tokens}/${id}`, { token });
const list = async (token: string) => (await plane.call('GET', tokens, { token })).body.data;
const me = (token: string) => plane.call('GET', '/api/auth/me', { token });

/** A session, and a personal token of the same user. */
async function signInWithToken(fields: object = {}) {
  const session = await plane.signIn('member');
  const { status, body } = await create(session, fields);
  expect(status).toBe(201);
  return { session, ...body.data } as { session: string; id: number; access_token: string };
}

test('a token is shown once, speaks for its user, is listed without its value, and is revoked', async () => {
  const session = await plane.signIn('member');
  const { status, body } = await create(session, { name: 'deploy script' });
  expect(status).toBe(201);
  const listed = {
    id: expect.any(Number),
    name: 'deploy script',
    created_at: plane.clock.now().toISOString(),
    expires_at: null,
    last_used_at: null,
    networks: null,
  };
  expect(body.data).toEqual({ ...listed, access_token: expect.stringMatching(/^cpt_[\w-]{43}$/) });
  expect(await list(session)).toEqual([listed]);

  const token = body.data.access_token;
  expect((await me(token)).body).toEqual((await me(session)).body);
  expect((await plane.call('GET', '/api/networks', { token })).status).toBe(200);

  expect(await revoke(session, body.data.id)).toMatchObject({ status: 200, body: { data: null } });
  expect((await me(token)).status).toBe(401);
  expect(await list(session)).toEqual([]);
  expect((await revoke(session, body.data.id)).status).toBe(404);
});

test('a token with an end holds until then', async () => {
  const { session, access_token } = await signInWithToken({ expires_in_days: 30 });
  const [{ expires_at }] = await list(session);
  expect(Date.parse(expires_at)).toBe(plane.clock.now().getTime() + 30 * 24 * hour);
  plane.clock.advance(30 * 24 * hour - 1);
  expect((await me(access_token)).status).toBe(200);
  plane.clock.advance(1);
  expect((await me(access_token)).status).toBe(401);
});

test('the tokens of another are not there, not even for an owner', async () => {
  const { id, access_token } = await signInWithToken();
  const owner = await plane.signIn('owner');
  expect((await revoke(owner, id)).status).toBe(404);
  expect(await list(owner)).toEqual([]);
  expect((await me(access_token)).status).toBe(200);
});

test('a token never has more than the role of its user, as it is at each request', async () => {
  const { access_token } = await signInWithToken();
  const { id } = (await me(access_token)).body.data;
  const make = () =>
    plane.call('POST', '/api/networks', { token: access_token, body: { name: 'n', private_cidr: '10.9.0.0/24' } });
  expect((await make()).status).toBe(201);
  await withDatabase(plane.dataDir, (db) =>
    db.updateTable('users').set({ role: 'viewer' }).where('id', '=', id).execute(),
  );
  expect((await make()).status).toBe(403);
  expect((await me(access_token)).body.data.role).toBe('viewer');
});

test('a user makes 200 tokens a day at the most, so that no user fills the audit with them', async () => {
  const session = await plane.signIn('viewer');
  const { id, email } = (await me(session)).body.data;
  const at = plane.clock.now();
  const entry = {
    ...{ organization_id: 1, at: at.toISOString(), actor_kind: 'user' as const, actor_id: id, actor_name: email },
    ...{
      action: 'token.create',
      target_kind: 'personal_token' as const,
      target_id: 1,
      target_name: 'ci',
      details: '{}',
    },
  };
  await withDatabase(plane.dataDir, (db) =>
    db
      .insertInto('audit_entries')
      .values(Array.from({ length: 199 }, () => entry))
      .execute(),
  );
  expect((await create(session)).status).toBe(201);
  const { status, body, headers } = await create(session);
  expect([status, body.message]).toEqual([
    429,
    expect.stringMatching(/^too many tokens made in a day, 200; try again in \d+ s$/),
  ]);
  const untilMidnight = (24 * hour - (at.getTime() % (24 * hour))) / 1000;
  expect(headers.get('retry-after')).toBe(String(Math.ceil(untilMidnight)));
  expect((await create(await plane.signIn('viewer'))).status).toBe(201);
});

test('a login more than 5 minutes ago makes no token without the password', async () => {
  const [first, second] = ['the first long password', 'the second long password'];
  const email = 'fresh@example.net';
  const body = { email, password: first, role: 'member' };
  await plane.call('POST', '/api/users', { token: await plane.signIn('owner'), body });
  const session = (await plane.call('POST', '/api/auth/login', { body: { email, password: first } })).body.data;
  const { access_token: old } = session;
  plane.clock.advance(5 * 60_000);
  expect((await create(old)).status).toBe(201);
  plane.clock.advance(1);
  const refused = await create(old);
  expect([refused.status, refused.body.errors]).toEqual([
    422,
    { password: ['is required, because the login of this session is more than 5 minutes ago'] },
  ]);
  const wrong = await create(old, { password: second });
  expect([wrong.status, wrong.body.message]).toEqual([
    403,
    'the current password is wrong; give the one that you log in with',
  ]);
  const audit = (await plane.call('GET', '/api/audit?limit=1', { token: await plane.signIn('owner') })).body.data;
  expect(audit[0]).toMatchObject({ action: 'password.refused', target: { name: email } });
  const made = await create(old, { password: first });
  expect(made.status).toBe(201);
  // The password makes no token out of a token.
  expect((await create(made.body.data.access_token, { password: first })).status).toBe(403);
  expect(plane.log()).not.toMatch(/long password/);
});

test('a login while the clock was ahead proves no password once the clock is right, nor when it gets there again', async () => {
  const ahead = await startPlane();
  ahead.clock.advance(hour);
  const session = (await ahead.call('POST', '/api/auth/login', { body: owner })).body.data.access_token;
  const make = async () => (await ahead.call('POST', tokens, { token: session, body: { name: 'ci' } })).status;
  expect(await make()).toBe(201);
  ahead.clock.setBack(5_000);
  expect(await make()).toBe(201);
  ahead.clock.setBack(hour - 5_000);
  expect(await make()).toBe(422);
  // As the clock watch does, which waits for no request.
  await withDatabase(ahead.dataDir, (db) => clampInstants(db, ahead.clock.now()));
  for (const ms of [0, hour - 60_000, 60_000, 240_000]) {
    ahead.clock.advance(ms);
    expect(await make()).toBe(422);
  }
});

test('passwords cannot be guessed with a session faster than by logging in', async () => {
  const strict = await startPlane({ limits: { failedLogins: 2 } });
  const session = (await strict.call('POST', '/api/auth/login', { body: owner })).body.data.access_token;
  const statuses = [];
  for (let times = 0; times < 3; times += 1) {
    const body = { name: 'ci', password: 'wrong' };
    statuses.push((await strict.call('POST', tokens, { token: session, body })).status);
  }
  expect(statuses).toEqual([403, 403, 429]);
});

test('a token makes no token, and sees and revokes those of its user', async () => {
  const { access_token } = await signInWithToken();
  const refused = await create(access_token);
  expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining('personal token')]);
  const [{ id }] = await list(access_token);
  expect((await revoke(access_token, id)).status).toBe(200);
  expect((await me(access_token)).status).toBe(401);
});

test('to log out with a token revokes the token, and ends no session', async () => {
  const { session, access_token } = await signInWithToken();
  const other = (await create(session)).body.data.access_token;
  expect((await plane.call('POST', '/api/auth/logout', { token: access_token })).status).toBe(200);
  expect((await me(access_token)).status).toBe(401);
  expect([(await me(session)).status, (await me(other)).status]).toEqual([200, 200]);
});

test('the end of a session is not that of the tokens made in it', async () => {
  const { session, access_token } = await signInWithToken();
  await plane.call('POST', '/api/auth/logout', { token: session });
  expect((await me(access_token)).status).toBe(200);
});

test('the last use is written once an hour, so that a busy token costs no write with each request', async () => {
  const { session, id, access_token } = await signInWithToken();
  const lastUse = async () => (await list(session))[0].last_used_at;
  const first = plane.clock.now().toISOString();
  await me(access_token);
  expect(await lastUse()).toBe(first);
  plane.clock.advance(hour);
  // A write would have to wait now.
  await withDatabase(plane.dataDir, (db) =>
    db.transaction().execute(async (transaction) => {
      await transaction.updateTable('personal_tokens').set({ name: 'held' }).where('id', '=', id).execute();
      expect((await me(access_token)).status).toBe(200);
    }),
  );
  expect(await lastUse()).toBe(first);
  plane.clock.advance(1);
  await me(access_token);
  expect(await lastUse()).toBe(plane.clock.now().toISOString());
});

test('a user has 100 tokens at most, however many requests come at once', async () => {
  const session = await plane.signIn('viewer');
  const replies = await Promise.all(Array.from({ length: 103 }, (_, index) => create(session, { name: `${index}` })));
  expect(replies.filter(({ status }) => status === 201)).toHaveLength(100);
  const refused = replies.find(({ status }) => status !== 201);
  expect([refused?.status, refused?.body.errors]).toEqual([
    422,
    { body: [expect.stringContaining('revoke one first')] },
  ]);

  const again = (await list(session)).find(({ name }: { name: string }) => name === '7');
  expect((await revoke(session, again.id)).status).toBe(200);
  expect((await create(session)).status).toBe(201);
  expect((await create(session)).status).toBe(422);
});

test.each([
  [{}, { name: ['is required'] }],
  [{ name: ' ' }, { name: ['must not be empty'] }],
  [{ name: 'a\0b' }, { name: ['must not hold a NUL character'] }],
  [{ name: 'x'.repeat(121) }, { name: ['must be at most 120 characters'] }],
  [{ name: 'n', expires_in_days: 0 }, { expires_in_days: ['must be at least 1'] }],
  [{ name: 'n', expires_in_days: 366 }, { expires_in_days: ['must be at most 365'] }],
  [{ name: 'n', expires_in_days: 1.5 }, { expires_in_days: ['must be an integer'] }],
])('%j is a 422 that names its field', async (body, errors) => {
  const reply = await plane.call('POST', tokens, { token: await plane.signIn('viewer'), body });
  expect([reply.status, reply.body.errors]).toEqual([422, errors]);
});
