import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { closePlane, enroll, makeKey, makeNetwork, openPlane, owner, type Plane } from '../../harness.ts';

let plane: Plane;
let token: string;
beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));

const password = 'a long enough password';
let made = 0;
const create = (fields: object = {}, as = token) => {
  const body = { email: `user-${++made}@example.net`, password, role: 'member', ...fields };
  return plane.call('POST', '/api/users', { token: as, body });
};
const remove = (id: number, as = token) => plane.call('DELETE', `/api/users/${id}`, { token: as });
const login = async (email: string, word = password) =>
  plane.call('POST', '/api/auth/login', { body: { email, password: word } });
const me = async (as: string) => (await plane.call('GET', '/api/auth/me', { token: as })).body.data;
const list = async (as = token) => (await plane.call('GET', '/api/users', { token: as })).body.data;

test('a user is made, listed without its password, logs in with its role, and is removed', async () => {
  const { status, body } = await create({ email: 'Ada@Example.net', role: 'viewer' });
  expect(status).toBe(201);
  const user = {
    id: expect.any(Number),
    email: 'ada@example.net',
    role: 'viewer',
    created_at: expect.any(String),
    networks: null,
  };
  expect(body).toEqual({ data: user });
  expect(await list()).toContainEqual({ ...body.data, subject: null, has_second_factor: false });
  expect((await list()).map(({ email }: { email: string }) => email)).toContain(owner.email);

  const session = (await login('ADA@example.net')).body.data.access_token;
  expect(await me(session)).toMatchObject({ id: body.data.id, role: 'viewer', organization: { id: 1 } });

  expect(await remove(body.data.id)).toMatchObject({ status: 200, body: { data: { keys_revoked: [] } } });
  expect((await list()).map(({ id }: { id: number }) => id)).not.toContain(body.data.id);
  expect((await login('ada@example.net')).status).toBe(401);
  expect((await remove(body.data.id)).status).toBe(404);
});

test('with a user go its sessions and its personal tokens, and those of no other user', async () => {
  const { id, email } = (await create()).body.data;
  const session = (await login(email)).body.data.access_token;
  const made = await plane.call('POST', '/api/auth/tokens', { token: session, body: { name: 'ci' } });
  const personal = made.body.data.access_token;
  const status = async (as: string) => (await plane.call('GET', '/api/networks', { token: as })).status;
  expect([await status(session), await status(personal)]).toEqual([200, 200]);
  await remove(id);
  expect([await status(session), await status(personal), await status(token)]).toEqual([401, 401, 200]);
});

describe('the usable enrolment keys of a user', () => {
  /** A member with a key, and its network. */
  const makeMember = async () => {
    const { id, email } = (await create()).body.data;
    const session = (await login(email)).body.data.access_token;
    const network = await makeNetwork(plane, session);
    const key = await makeKey(plane, session, network);
    // Of another maker, and of none: not touched.
    await makeKey(plane, token, network, { name: 'other' });
    return { id, network, key };
  };
  const listed = async (network: number) =>
    (await plane.call('GET', `/api/networks/${network}/enrollment-keys`, { token })).body.data.map(
      ({ name }: { name: string }) => name,
    );
  const newest = async () => (await plane.call('GET', '/api/audit?limit=1', { token })).body.data[0];

  test('are revoked with it, listed and in the audit', async () => {
    const { id, network, key } = await makeMember();
    const { data } = (await remove(id)).body;
    expect(data.keys_revoked).toMatchObject([{ name: 'rack', uses: 0, network: { id: network, name: 'office' } }]);
    expect((await newest()).details.keys_revoked).toEqual([{ id: data.keys_revoked[0].id, name: 'rack' }]);
    const refused = await enroll(plane, key);
    expect([refused.status, refused.body.message]).toEqual([403, 'the enrolment key was revoked']);
    expect(await listed(network)).toEqual(['other']);
  });

  test('are revoked where it becomes a viewer, and no other role', async () => {
    const { id, network } = await makeMember();
    const setRole = async (role: string, fields: object = {}) =>
      (await plane.call('PATCH', `/api/users/${id}`, { token, body: { role, ...fields } })).body.data;
    expect(await setRole('admin')).not.toHaveProperty('keys_revoked');
    expect(await setRole('viewer', { keep_keys: true })).not.toHaveProperty('keys_revoked');
    expect(await listed(network)).toEqual(['rack', 'other']);
    await setRole('member');
    expect((await setRole('viewer')).keys_revoked).toMatchObject([{ name: 'rack' }]);
    expect((await newest()).details).toMatchObject({ role: 'viewer', keys_revoked: [{ name: 'rack' }] });
    expect(await listed(network)).toEqual(['other']);
  });

  test('stay usable on request', async () => {
    const { id, key } = await makeMember();
    const removed = await plane.call('DELETE', `/api/users/${id}?keep_keys=true`, { token });
    expect(removed.body.data).toEqual({ keys_revoked: [] });
    expect((await enroll(plane, key)).status).toBe(201);
  });
});

describe('a password', () => {
  test.each([
    ['eleven char', 'must be at least 12 characters'],
    ['ééééééééééé', 'must be at least 12 characters'],
    ['x'.repeat(1025), 'must be at most 1024 bytes'],
    ['é'.repeat(513), 'must be at most 1024 bytes'],
  ])('of %s is refused', async (word, rule) => {
    const { status, body } = await create({ password: word });
    expect([status, body.errors]).toEqual([422, { password: [rule] }]);
  });

  test.each(['twelve chars', '🔑'.repeat(12), 'é'.repeat(512)])('of %s is taken, and lets in', async (word) => {
    const { status, body } = await create({ password: word });
    expect(status).toBe(201);
    expect((await login(body.data.email, word)).status).toBe(200);
  });
});

test.each([
  [{ email: undefined }, { email: ['is required'] }],
  [{ email: 'ada' }, { email: ['must be an e-mail address'] }],
  [{ email: `${'a'.repeat(250)}@example.net` }, { email: ['must be at most 254 characters'] }],
  [{ password: undefined }, { password: ['is required'] }],
  [{ role: undefined }, { role: ['must be "owner" or "admin" or "member" or "viewer"'] }],
  [{ role: 'king' }, { role: ['must be "owner" or "admin" or "member" or "viewer"'] }],
])('%j is a 422 that names its field', async (fields, errors) => {
  const { status, body } = await create(fields);
  expect([status, body.errors]).toEqual([422, errors]);
});

test('an e-mail address is one user, in capitals too, and across organizations', async () => {
  const taken = { email: ['is in use already'] };
  expect((await create({ email: owner.email.toUpperCase() })).body.errors).toEqual(taken);
  const foreigner = await plane.signIn('owner', await plane.addOrganization('other'));
  expect((await create({ email: owner.email }, foreigner)).body.errors).toEqual(taken);
  const email = 'twice@example.net';
  const replies = await Promise.all(Array.from({ length: 8 }, () => create({ email })));
  expect(replies.filter(({ status }) => status === 201)).toHaveLength(1);
  expect(replies.filter(({ status }) => status === 422)).toHaveLength(7);
});

test('no user may remove itself, and only an owner may make or remove an owner', async () => {
  const admin = await plane.signIn('admin');
  for (const as of [token, admin]) {
    const refused = await remove((await me(as)).id, as);
    expect([refused.status, refused.body.message]).toEqual([403, expect.stringContaining('remove yourself')]);
  }
  const refused = await create({ role: 'owner' }, admin);
  expect([refused.status, refused.body.message]).toEqual([403, 'only an owner may make an owner; ask an owner']);
  expect((await create({ role: 'admin' }, admin)).status).toBe(201);

  const second = (await create({ role: 'owner' })).body.data;
  expect(await remove(second.id, admin)).toMatchObject({
    status: 403,
    body: { message: 'only an owner may remove an owner; ask an owner' },
  });
  expect((await list()).map(({ id }: { id: number }) => id)).toContain(second.id);
  expect((await remove(second.id)).status).toBe(200);
});

test('of owners who remove each other at the same time one is left', async () => {
  const organization = await plane.addOrganization('contested');
  const owners = await Promise.all(Array.from({ length: 6 }, () => plane.signIn('owner', organization)));
  const ids = await Promise.all(owners.map(async (each) => (await me(each)).id as number));
  await Promise.all(owners.flatMap((each) => ids.map((id) => remove(id, each))));
  const left = await Promise.all(owners.map((each) => plane.call('GET', '/api/users', { token: each })));
  const admitted = left.filter(({ status }) => status === 200);
  expect(admitted).toHaveLength(1);
  expect(admitted[0]?.body.data).toMatchObject([{ role: 'owner' }]);
});
