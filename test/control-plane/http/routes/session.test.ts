import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  closePlane,
  hour,
  makeFolder,
  makeNetwork,
  openPlane,
  owner,
  type Plane,
  startPlane,
  withDatabase,
} from '../../harness.ts';

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

const minute = 60_000;

test('a session that is used ends at its end', async () => {
  const { body } = await login(owner);
  for (let day = 1; day <= 7; day += 1) {
    plane.clock.advance(24 * hour - (day === 7 ? 1 : 0));
    expect((await me(body.data.access_token)).status).toBe(200);
  }
  plane.clock.advance(1);
  expect((await me(body.data.access_token)).status).toBe(401);
});

describe('a session without use', () => {
  const idle = { idleMs: hour, maxMs: 24 * hour };
  const openIdle = async (options = {}) => {
    const on = await startPlane({ sessionLimits: idle, ...options });
    const token = (await on.call('POST', '/api/auth/login', { body: owner })).body.data.access_token as string;
    const use = async (headers = {}) => (await on.call('GET', '/api/auth/me', { token, headers })).status;
    const stored = () =>
      withDatabase(on.dataDir, (db) => db.selectFrom('sessions').select('last_used_at').executeTakeFirstOrThrow());
    return { ...on, token, use, lastUse: async () => (await stored()).last_used_at };
  };

  test('ends after its idle limit, and up to 5 minutes later: uses in between are not stored', async () => {
    const { clock, use } = await openIdle();
    for (const pause of [hour, 5 * minute - 1, hour, hour]) {
      clock.advance(pause);
      expect(await use()).toBe(200);
    }
    clock.advance(hour + 5 * minute);
    expect(await use()).toBe(401);
  });

  test('has its use stored once in 5 minutes, and shows it', async () => {
    const { call, clock, use, lastUse, token } = await openIdle();
    const opened = clock.now().toISOString();
    clock.advance(5 * minute);
    await use();
    expect(await lastUse()).toBe(opened);
    clock.advance(1);
    await use();
    const used = clock.now().toISOString();
    expect(await lastUse()).toBe(used);
    clock.advance(5 * minute);
    expect((await call('GET', '/api/auth/sessions', { token })).body.data).toMatchObject([{ last_used_at: used }]);
    expect(await lastUse()).toBe(used);
  });

  test.each(['wait=1', 'wait=0', 'respond-async, wait=0'])('is not kept by a page that prefers %s', async (prefer) => {
    const { clock, use, lastUse } = await openIdle();
    const opened = clock.now().toISOString();
    for (let count = 0; count < 6; count += 1) {
      clock.advance(10 * minute);
      expect(await use({ prefer })).toBe(200);
    }
    expect(await lastUse()).toBe(opened);
    clock.advance(5 * minute);
    expect(await use({ prefer })).toBe(401);
  });

  test('is refused at the end of a wait, and in a change that began before', async () => {
    const on = await openIdle();
    const network = await makeNetwork(on, on.token);
    const path = `/api/networks/${network}`;
    const tag = (await on.call('GET', path, { token: on.token })).headers.get('etag') ?? '';
    const headers = { prefer: 'wait=1', 'if-none-match': tag };
    const held = on.call('GET', path, { token: on.token, headers });
    await new Promise((resolve) => setTimeout(resolve, 200));
    on.clock.advance(hour + 5 * minute);
    expect((await held).status).toBe(401);
  });

  test('is deleted with a later login; personal tokens have no such limit', async () => {
    const on = await openIdle();
    const made = await on.call('POST', '/api/auth/tokens', { token: on.token, body: { name: 'ci' } });
    on.clock.advance(2 * hour);
    await on.call('POST', '/api/auth/login', { body: owner });
    const rows = await withDatabase(on.dataDir, (db) => db.selectFrom('sessions').select('id').execute());
    expect(rows).toHaveLength(1);
    on.clock.advance(24 * hour);
    const by = (token: string) => on.call('GET', '/api/networks', { token });
    expect((await by(made.body.data.access_token)).status).toBe(200);
  });

  test('counts from its login where no use is stored, as for one of an earlier version', async () => {
    const { clock, dataDir, use } = await openIdle();
    await withDatabase(dataDir, (db) => db.updateTable('sessions').set({ last_used_at: null }).execute());
    clock.advance(hour + 5 * minute - 1);
    expect(await use()).toBe(200);
    await withDatabase(dataDir, (db) => db.updateTable('sessions').set({ last_used_at: null }).execute());
    clock.advance(1);
    expect(await use()).toBe(401);
  });
});

test('a restart with shorter limits ends sessions that were opened before it, also the end that is shown', async () => {
  const dataDir = makeFolder();
  const before = await openPlane({ dataDir });
  const token = (await before.call('POST', '/api/auth/login', { body: owner })).body.data.access_token;
  await before.server.close();
  const limits = { idleMs: hour, maxMs: 2 * hour };
  const after = await openPlane({ dataDir, sessionLimits: limits });
  const list = () => after.call('GET', '/api/auth/sessions', { token });
  expect((await list()).body.data).toMatchObject([{ expires_at: '2030-01-01T02:00:00.000Z' }]);
  after.clock.advance(hour);
  expect((await list()).status).toBe(200);
  after.clock.advance(hour - 1);
  expect((await list()).status).toBe(200);
  after.clock.advance(1);
  expect((await list()).status).toBe(401);
  await after.server.close();
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
