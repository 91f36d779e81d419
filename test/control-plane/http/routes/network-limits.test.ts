import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Role } from '../../../../src/contract/auth.ts';
import { NewerDatabase } from '../../../../src/control-plane/errors.ts';
import { migrate } from '../../../../src/control-plane/store/migrations/migrate.ts';
import { migrations, neededMigration } from '../../../../src/control-plane/store/migrations/migrations.ts';
import { makeThings } from '../../credentials.ts';
import { closePlane, enroll, makeKey, makeNetwork, openPlane, type Plane, withDatabase } from '../../harness.ts';
import { long, openWaiting, read, untilWaiting } from '../../push/long-poll.ts';
import { type Rule, rules, type Things } from './access-rules.ts';

let plane: Plane;
let token: string;
let things: Things;
/** The network to which callers are limited. The things are of another. */
let own: number;

beforeAll(async () => {
  plane = await openPlane({ limits: { requests: 1_000_000, failedLogins: 1000, failedEnrollments: 1000 } });
  token = await plane.signIn('owner');
  things = await makeThings(plane);
  own = await makeNetwork(plane, token, { name: 'own' });
});
afterAll(() => closePlane(plane));

const password = 'a long enough password';
let made = 0;

const ask = (method: string, path: string, as: string, body?: unknown) =>
  plane.call(method, path, { token: as, ...(body !== undefined && { body }) });

async function must(reply: ReturnType<Plane['call']>) {
  const { status, body } = await reply;
  expect([status, body]).toEqual([status < 300 ? status : 200, expect.anything()]);
  return body.data;
}

interface Limited {
  readonly id: number;
  readonly session: string;
}

async function makeUser(role: Role, networks: number[] | null): Promise<Limited> {
  const email = `limited-${++made}@example.net`;
  const { id } = await must(ask('POST', '/api/users', token, { email, password, role, networks }));
  const login = await must(plane.call('POST', '/api/auth/login', { body: { email, password } }));
  return { id, session: login.access_token };
}

const makeToken = async (session: string, fields: object): Promise<string> =>
  (await must(ask('POST', '/api/auth/tokens', session, { name: 'ci', ...fields }))).access_token;
const setLimit = (id: number, networks: number[] | null, fields: object = {}) =>
  ask('PATCH', `/api/users/${id}`, token, { networks, ...fields });
const namesOf = async (path: string, as: string) =>
  (await must(ask('GET', path, as))).map(({ name, network }: { name?: string; network?: number }) => name ?? network);
const newestOf = async (action: string) => (await must(ask('GET', `/api/audit?limit=1&action=${action}`, token)))[0];

/** Callers who may use one network alone, with the role and whether their credential is a token with a limit. */
async function makeCallers() {
  const callers: { name: string; role: Role; bySession: boolean; isTokenLimited: boolean; token: string }[] = [];
  for (const role of ['admin', 'member', 'viewer'] as const) {
    const { session } = await makeUser(role, [own]);
    const free = await makeUser(role, null);
    const add = (name: string, bySession: boolean, isTokenLimited: boolean, value: string) =>
      callers.push({ name: `${name} ${role}`, role, bySession, isTokenLimited, token: value });
    add('session of a limited', true, false, session);
    add('token of a limited', false, false, await makeToken(session, {}));
    add('limited token of a', false, true, await makeToken(free.session, { networks: [own] }));
  }
  const value = await makeToken(await plane.signIn('owner'), { networks: [own] });
  callers.push({
    name: 'limited token of an owner',
    role: 'owner',
    bySession: false,
    isTokenLimited: true,
    token: value,
  });
  return callers;
}
type LimitedCaller = Awaited<ReturnType<typeof makeCallers>>[number];

const operations = Object.entries(rules);
const ofNetwork = operations.filter(([name]) => name.includes('{network}'));
const others = operations.filter(([name]) => !name.includes('{network}'));

function hasRole({ roles, sessionOnly }: Rule, { role, bySession }: LimitedCaller): boolean {
  return (roles?.includes(role) ?? false) && (bySession || !sessionOnly);
}

async function call([operation, rule]: [string, Rule], caller: LimitedCaller, which: Things) {
  const [method = '', template = ''] = operation.split(' ');
  return ask(method, rule.path?.(which) ?? template, caller.token, rule.body?.(which));
}

describe('a caller that is limited to a network', () => {
  let callers: LimitedCaller[];
  beforeAll(async () => {
    callers = await makeCallers();
  });

  test.each(ofNetwork)('%s: another network does not exist for it', async (...operation) => {
    for (const caller of callers) {
      const { status, body } = await call(operation, caller, things);
      const missing = await call(operation, caller, { ...things, network: 999_999 });
      expect([caller.name, status, body]).toEqual([caller.name, missing.status, missing.body]);
      expect([caller.name, status]).toEqual([caller.name, hasRole(operation[1], caller) ? 404 : 403]);
    }
  });

  /** These are only about the credential, or leave out other networks. */
  const permitted = ['GET /api/networks', 'GET /api/health', 'GET /api/auth/me', 'POST /api/auth/logout'];

  test.each(others)('%s: its own account at most, and nothing of the organization', async (...operation) => {
    const [name, rule] = operation;
    for (const caller of name === 'POST /api/auth/logout' ? await makeCallers() : callers) {
      const { status, body } = await call(operation, caller, things);
      const isAllowed = permitted.includes(name) || (name.includes(' /api/auth/') && !caller.isTokenLimited);
      const wanted = rule.anyone || (hasRole(rule, caller) && isAllowed) ? rule.success : 403;
      expect([caller.name, status, JSON.stringify(body)]).toEqual([
        caller.name,
        wanted,
        expect.not.stringContaining('canary-network'),
      ]);
    }
  });

  test('lists its network alone', async () => {
    for (const caller of callers) {
      expect(await namesOf('/api/networks', caller.token)).toEqual(['own']);
      expect(await namesOf('/api/health', caller.token)).toEqual([own]);
      expect((await must(ask('GET', '/api/auth/me', caller.token))).networks).toEqual([own]);
    }
    const { body } = await ask('GET', '/api/networks?per_page=1', callers[0]?.token ?? '');
    expect([body.links.next, body.meta.total]).toEqual([null, 1]);
  });

  test('uses its own network with its role', async () => {
    const key = await makeKey(plane, token, own);
    const { peer } = (await enroll(plane, key)).body.data;
    for (const caller of callers) {
      const reading = await ask('GET', `/api/networks/${own}/peers/${peer.id}`, caller.token);
      const change = await ask('PATCH', `/api/networks/${own}`, caller.token, { description: caller.name });
      expect([caller.name, reading.status, change.status]).toEqual([
        caller.name,
        200,
        caller.role === 'viewer' ? 403 : 200,
      ]);
    }
  });

  test('is refused in plain words', async () => {
    const messageFor = async (name: string) => {
      const caller = callers.find((each) => each.name === name) ?? expect.unreachable();
      return (await ask('POST', '/api/networks', caller.token, { name: 'n' })).body.message;
    };
    expect(await messageFor('session of a limited admin')).toBe(
      'a user who is limited to networks may not do this; ask an owner, or an admin without a limit',
    );
    expect(await messageFor('limited token of an owner')).toBe(
      'a token that is limited to networks may not do this; log in, or use a token without a limit',
    );
  });
});

describe('the limit of a user', () => {
  test('is in the list of users and in the audit, and applies from the next request on', async () => {
    const { id, session } = await makeUser('admin', null);
    const listed = async () =>
      (await must(ask('GET', '/api/users', token))).find((user: { id: number }) => user.id === id).networks;
    expect(await listed()).toBeNull();
    expect((await ask('GET', `/api/networks/${things.network}`, session)).status).toBe(200);
    expect((await setLimit(id, [own, own])).body.data).toMatchObject({ role: 'admin', networks: [own] });
    expect(await listed()).toEqual([own]);
    expect((await ask('GET', `/api/networks/${things.network}`, session)).status).toBe(404);
    expect((await newestOf('user.update')).details).toEqual({
      networks: [{ id: own, name: 'own' }],
      networks_before: null,
      keys_revoked: [],
    });
    const entry = await newestOf('user');
    await setLimit(id, [own]);
    expect(await newestOf('user')).toEqual(entry);
    expect((await setLimit(id, null)).body.data.networks).toBeNull();
    expect((await ask('GET', `/api/networks/${things.network}`, session)).status).toBe(200);
    await makeUser('viewer', [own]);
    expect((await newestOf('user.create')).details).toEqual({ role: 'viewer', networks: [{ id: own, name: 'own' }] });
  });

  test('of no network leaves a user its account alone', async () => {
    const { session } = await makeUser('admin', []);
    expect(await namesOf('/api/networks', session)).toEqual([]);
    expect((await must(ask('GET', '/api/auth/me', session))).networks).toEqual([]);
    expect((await ask('GET', `/api/networks/${own}`, session)).status).toBe(404);
    expect((await ask('POST', '/api/networks', session, { name: 'n' })).status).toBe(403);
  });

  test('loses a deleted network, and stays a limit', async () => {
    const network = await makeNetwork(plane, token, { name: 'short' });
    const { id, session } = await makeUser('member', [network]);
    const ci = await makeToken((await makeUser('admin', null)).session, { networks: [network] });
    await must(ask('DELETE', `/api/networks/${network}`, session));
    for (const each of [session, ci]) {
      expect((await must(ask('GET', '/api/auth/me', each))).networks).toEqual([]);
      expect(await namesOf('/api/networks', each)).toEqual([]);
      expect((await ask('GET', `/api/networks/${own}`, each)).status).toBe(404);
    }
    // A caller that deletes a network follows the removal on its hosts.
    expect((await ask('GET', `/api/networks/${network}/removals`, session)).status).toBe(200);
    const users = await must(ask('GET', '/api/users', token));
    expect(users.find((user: { id: number }) => user.id === id).networks).toEqual([]);
  });

  test.each([
    [
      'of another organization',
      async () => makeNetwork(plane, await plane.signIn('owner', await plane.addOrganization('o'))),
    ],
    ['that does not exist', async () => 999_999],
  ])('names no network %s', async (_, find) => {
    const network = await find();
    const errors = { networks: [`has no network ${network}`] };
    const { id, session } = await makeUser('member', null);
    expect((await setLimit(id, [own, network])).body.errors).toEqual(errors);
    const user = { email: 'x@example.net', password, role: 'viewer', networks: [network] };
    expect((await ask('POST', '/api/users', token, user)).body.errors).toEqual(errors);
    expect((await ask('POST', '/api/auth/tokens', session, { name: 't', networks: [network] })).body.errors).toEqual(
      errors,
    );
  });

  test('is not for owners: a new owner has all networks', async () => {
    const refused = { networks: ['is not for owners, who have all networks; choose another role too'] };
    const user = { email: 'y@example.net', password, role: 'owner', networks: [own] };
    expect((await ask('POST', '/api/users', token, user)).body.errors).toEqual(refused);
    const { id, session } = await makeUser('admin', [own]);
    expect((await setLimit(id, [own], { role: 'owner' })).body.errors).toEqual(refused);
    const { data } = (await ask('PATCH', `/api/users/${id}`, token, { role: 'owner' })).body;
    expect(data).toMatchObject({ role: 'owner', networks: null });
    expect((await setLimit(id, [own])).body.errors).toEqual(refused);
    expect((await ask('GET', `/api/networks/${things.network}`, session)).status).toBe(200);
    expect((await setLimit(id, [own], { role: 'member' })).body.data).toMatchObject({
      role: 'member',
      networks: [own],
    });
  });

  test('is neither lifted by its user nor by an admin', async () => {
    const { id, session } = await makeUser('admin', [own]);
    const admin = await makeUser('admin', null);
    for (const as of [session, await makeToken(session, {}), admin.session]) {
      expect((await ask('PATCH', `/api/users/${id}`, as, { networks: null })).status).toBe(403);
    }
    expect((await must(ask('GET', '/api/auth/me', session))).networks).toEqual([own]);
  });

  test('needs a proof to permit more, and none to permit less', async () => {
    const one = await makeUser('member', [own]);
    const late = await plane.signIn('owner');
    plane.clock.advance(6 * 60_000);
    const change = (body: object, as = late) => ask('PATCH', `/api/users/${one.id}`, as, body);
    const required = { current_password: [expect.stringContaining('is required')] };
    expect((await change({ networks: [own, things.network] })).body.errors).toEqual(required);
    expect((await change({ networks: null })).body.errors).toEqual(required);
    expect((await change({ role: 'viewer', networks: null })).body.errors).toEqual(required);
    expect((await change({ networks: [] })).status).toBe(200);
    expect((await change({ networks: [own] })).body.errors).toEqual(required);
    token = await plane.signIn('owner');
    const ci = await makeToken(token, {});
    expect((await change({ networks: [own] }, ci)).status).toBe(403);
    expect((await change({ networks: [own] }, token)).status).toBe(200);
    expect((await change({ networks: [] }, ci)).status).toBe(200);
  });

  test('revokes the keys that its user made in networks that it loses', async () => {
    const { id, session } = await makeUser('member', null);
    await makeKey(plane, session, own, { name: 'kept' });
    await makeKey(plane, session, things.network, { name: 'lost' });
    const { data } = (await setLimit(id, [own])).body;
    expect(data.keys_revoked).toMatchObject([{ name: 'lost' }]);
    expect((await newestOf('user.update')).details.keys_revoked).toMatchObject([{ name: 'lost' }]);
    expect(await namesOf(`/api/networks/${own}/enrollment-keys`, token)).toContain('kept');
    expect((await setLimit(id, [], { keep_keys: true })).body.data).not.toHaveProperty('keys_revoked');
    expect(await namesOf(`/api/networks/${own}/enrollment-keys`, token)).toContain('kept');
    const body = { current_password: password, new_password: `${password}, and more` };
    expect((await ask('PUT', '/api/auth/password', session, body)).body.data.keys_made).toEqual([]);
  });
});

describe('the limit of a token', () => {
  test('is shown, in the audit, and never more than that of its user', async () => {
    const { id, session } = await makeUser('member', [own, things.network]);
    const ci = await makeToken(session, { networks: [things.network] });
    expect((await newestOf('token.create')).details.networks).toEqual([{ id: things.network, name: 'canary-network' }]);
    expect((await must(ask('GET', '/api/auth/tokens', session)))[0].networks).toEqual([things.network]);
    expect((await ask('GET', `/api/networks/${things.network}`, ci)).status).toBe(200);
    expect((await ask('GET', `/api/networks/${own}`, ci)).status).toBe(404);
    await setLimit(id, [own]);
    for (const network of [own, things.network]) {
      expect((await ask('GET', `/api/networks/${network}`, ci)).status).toBe(404);
    }
    expect((await must(ask('GET', '/api/auth/me', ci))).networks).toEqual([]);
    const more = await ask('POST', '/api/auth/tokens', session, { name: 'more', networks: [things.network] });
    expect(more.body.errors).toEqual({ networks: [`has no network ${things.network}`] });
    await setLimit(id, null);
    expect((await ask('GET', `/api/networks/${things.network}`, ci)).status).toBe(200);
    expect((await ask('GET', `/api/networks/${own}`, ci)).status).toBe(404);
  });

  test('ends the reach of a token of a user that becomes an owner too', async () => {
    const { id, session } = await makeUser('admin', null);
    const ci = await makeToken(session, { networks: [own] });
    expect((await ask('PATCH', `/api/users/${id}`, token, { role: 'owner' })).status).toBe(200);
    expect((await ask('GET', `/api/networks/${things.network}`, ci)).status).toBe(404);
    expect((await ask('GET', '/api/users', ci)).status).toBe(403);
  });
});

test('a wait of a limited user ends without what came after its limit', async () => {
  const on = await openWaiting();
  try {
    const network = await makeNetwork(on.plane, on.token);
    const body = { email: 'waits@example.net', password, role: 'viewer' };
    const { id } = (await on.plane.call('POST', '/api/users', { token: on.token, body })).body.data;
    const login = await on.plane.call('POST', '/api/auth/login', { body });
    const waiting = read(on, network, 1, long, login.body.data.access_token);
    await untilWaiting(on, network);
    await on.plane.call('PATCH', `/api/users/${id}`, { token: on.token, body: { networks: [] } });
    await on.plane.call('PATCH', `/api/networks/${network}`, { token: on.token, body: { description: 'secret' } });
    expect((await waiting).status).toBe(404);
  } finally {
    await closePlane(on.plane);
  }
});

test('a version without limits does not start while there are any', async () => {
  const fresh = await openPlane();
  try {
    const by = await fresh.signIn('owner');
    const network = await makeNetwork(fresh, by);
    const earlier = Object.fromEntries(Object.entries(migrations).filter(([name]) => name < '0037'));
    const start = () => withDatabase(fresh.dataDir, (db) => migrate(db, earlier, neededMigration));
    const user = { email: 'a@example.net', password, role: 'viewer', networks: [network] };
    await start();
    const { id } = (await fresh.call('POST', '/api/users', { token: by, body: user })).body.data;
    await expect(start()).rejects.toThrow(new NewerDatabase('0037-network-limits'));
    const body = { name: 't', networks: [network] };
    const ci = (await fresh.call('POST', '/api/auth/tokens', { token: by, body })).body.data;
    await fresh.call('PATCH', `/api/users/${id}`, { token: by, body: { networks: null } });
    await expect(start()).rejects.toThrow(NewerDatabase);
    await fresh.call('DELETE', `/api/auth/tokens/${ci.id}`, { token: by });
    await start();
    await withDatabase(fresh.dataDir, (db) => migrate(db));
  } finally {
    await closePlane(fresh);
  }
});
