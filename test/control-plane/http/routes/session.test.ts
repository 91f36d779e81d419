import { afterAll, beforeAll, expect, test } from 'vitest';
import { closePlane, hour, openPlane, owner, type Plane, withDatabase } from '../../harness.ts';

let plane: Plane;
beforeAll(async () => {
  plane = await openPlane();
});
afterAll(() => closePlane(plane));

const login = (body: unknown) => plane.call('POST', '/api/auth/login', { body });
const me = (token?: string) => plane.call('GET', '/api/auth/me', { token });

test('the first owner logs in, reads its profile, logs out, and is out', async () => {
  const { status, body } = await login({ ...owner, device_name: 'laptop' });
  expect(status).toBe(200);
  expect(body).toEqual({
    data: {
      access_token: expect.stringMatching(/^cpu_[\w-]{43}$/),
      token_type: 'Bearer',
      expires_at: '2030-01-08T00:00:00.000Z',
    },
  });
  const token = body.data.access_token;
  expect(await me(token)).toMatchObject({
    status: 200,
    body: { data: { id: 1, email: owner.email, role: 'owner', organization: { id: 1, name: 'default' } } },
  });
  expect(await plane.call('POST', '/api/auth/logout', { token })).toMatchObject({ status: 200, body: { data: null } });
  expect((await me(token)).status).toBe(401);
});

test('logging out ends one session, not the others', async () => {
  const [one, other] = await Promise.all([login(owner), login(owner)]);
  await plane.call('POST', '/api/auth/logout', { token: one.body.data.access_token });
  expect((await me(one.body.data.access_token)).status).toBe(401);
  expect((await me(other.body.data.access_token)).status).toBe(200);
});

test('a user has 100 sessions at the most: a later login ends the oldest, and no other user’s', async () => {
  const other = await plane.signIn('viewer');
  const { body } = await login(owner);
  await withDatabase(plane.dataDir, async (db) => {
    const row = await db.selectFrom('sessions').selectAll().orderBy('id', 'desc').executeTakeFirstOrThrow();
    const { id: _, ...session } = row;
    const copies = Array.from({ length: 98 }, (_, index) => ({ ...session, token_hash: `copy ${index}` }));
    await db.insertInto('sessions').values(copies).execute();
  });
  const statuses = [];
  for (let count = 0; count < 2; count += 1) {
    await login(owner);
    statuses.push((await me(body.data.access_token)).status);
  }
  expect([statuses, (await me(other)).status]).toEqual([[200, 401], 200]);
});

test('an e-mail address is the same in capitals', async () => {
  expect((await login({ ...owner, email: 'Owner@Example.NET' })).status).toBe(200);
});

test('a wrong password and an unknown address are refused in the same words', async () => {
  const wrong = await login({ ...owner, password: 'wrong' });
  const unknown = await login({ ...owner, email: 'unknown@example.net' });
  expect(wrong.status).toBe(401);
  expect(wrong.body).toEqual({ message: 'e-mail address or password is wrong' });
  expect([unknown.status, unknown.body]).toEqual([wrong.status, wrong.body]);
});

test('whole tokens in cookies, as version 0.1 set them, end their sessions: of each port of the host, up to three', async () => {
  const tokens: string[] = [];
  for (let count = 0; count < 4; count += 1) tokens.push((await login(owner)).body.data.access_token);
  const cookie = tokens.map((token) => `cpn_session=${token}`).join('; ');
  expect((await plane.call('GET', '/api/auth/me', { headers: { cookie } })).status).toBe(401);
  const statuses: number[] = [];
  for (const token of tokens) statuses.push((await me(token)).status);
  expect(statuses).toEqual([401, 401, 401, 200]);
});

test('a session ends at its end', async () => {
  const { body } = await login(owner);
  plane.clock.advance(7 * 24 * hour - 1);
  expect((await me(body.data.access_token)).status).toBe(200);
  plane.clock.advance(1);
  expect((await me(body.data.access_token)).status).toBe(401);
});

test.each([
  ['no token', {}],
  ['an unknown token', { authorization: `Bearer cpu_${'x'.repeat(43)}` }],
  ['an unknown token of a peer', { authorization: `Bearer cpp_${'x'.repeat(43)}` }],
  ['another scheme', { authorization: 'Basic b3duZXI6cHc=' }],
  ['an empty bearer', { authorization: 'Bearer ' }],
])('%s is a 401 that demands a bearer', async (_what, headers) => {
  const reply = await plane.call('GET', '/api/auth/me', { headers });
  expect(reply.status).toBe(401);
  expect(reply.headers.get('www-authenticate')).toBe('Bearer');
  expect(reply.body).toEqual({ message: expect.any(String) });
});

test.each([
  [{}, { email: ['is required'], password: ['is required'] }],
  [{ email: 'owner', password: 'x' }, { email: ['must be an e-mail address'] }],
  [{ email: owner.email, password: 7 }, { password: ['must be a string'] }],
  [{ email: owner.email, password: '' }, { password: ['must not be empty'] }],
  [{ ...owner, device_name: 7 }, { device_name: ['must be a string'] }],
  [[], { body: ['must be an object'] }],
  [null, { body: ['is required'] }],
])('%j is a 422 that names its fields', async (body, errors) => {
  const reply = await login(body);
  expect(reply.status).toBe(422);
  expect(reply.body).toEqual({ message: expect.any(String), errors });
});

test('what is no JSON is a 422, and more than 64 KiB a 413', async () => {
  const broken = await plane.call('POST', '/api/auth/login', { raw: '{"email":' });
  expect([broken.status, broken.body.errors]).toEqual([422, { body: ['is not valid JSON'] }]);
  const form = await plane.call('POST', '/api/auth/login', {
    raw: 'email=owner',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  });
  expect(form.status).toBe(422);
  const poisoned = await plane.call('POST', '/api/auth/login', { raw: '{"__proto__": {"email": "x"}}' });
  expect(poisoned.status).toBe(422);
  const fits = await login({ ...owner, filler: 'x'.repeat(64 * 1024 - 200) });
  expect(fits.status).toBe(200);
  const large = await login({ ...owner, filler: 'x'.repeat(64 * 1024) });
  expect([large.status, large.body]).toEqual([413, { message: expect.stringContaining('64 KiB') }]);
});
