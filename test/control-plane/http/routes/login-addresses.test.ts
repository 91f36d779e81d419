import { afterAll, beforeAll, expect, test } from 'vitest';
import { widenAddress } from '../../../../src/control-plane/domain/caller.ts';
import { parsePrefix } from '../../../../src/core/net/cidr.ts';
import { closePlane, openPlane, owner, type Plane, withDatabase } from '../../harness.ts';

let plane: Plane;
let token: string;
beforeAll(async () => {
  plane = await openPlane({ proxies: [parsePrefix('127.0.0.1/32')] });
  token = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));

const password = 'a long enough password';
let made = 0;

async function makeUser() {
  const email = `traveller-${++made}@example.net`;
  const body = { email, password, role: 'viewer' };
  const headers = { 'x-forwarded-for': '203.0.113.1' };
  const { id } = (await plane.call('POST', '/api/users', { token, body, headers })).body.data;
  const logIn = async (address: string, word = password) => {
    // Two uses in one instant have no order.
    plane.clock.advance(1);
    const given = { body: { email, password: word, device_name: 'laptop' }, headers: { 'x-forwarded-for': address } };
    return (await plane.call('POST', '/api/auth/login', given)).status;
  };
  /** Logs in from one address, and changes the password from another one. */
  const changePassword = async (address: string, from: string) => {
    const given = { body: { email, password, device_name: 'laptop' }, headers: { 'x-forwarded-for': address } };
    const { access_token: own } = (await plane.call('POST', '/api/auth/login', given)).body.data;
    plane.clock.advance(1);
    const change = { current_password: password, new_password: 'another long password' };
    const changed = { token: own, body: change, headers: { 'x-forwarded-for': from } };
    return (await plane.call('PUT', '/api/auth/password', changed)).status;
  };
  return { id: id as number, email, logIn, changePassword };
}

/** The notices of a user, oldest first. */
async function noticesOf(id: number) {
  const headers = { 'x-forwarded-for': '203.0.113.1' };
  const { status, body } = await plane.call('GET', '/api/audit?action=login.new_address', { token, headers });
  expect([status, body.message]).toEqual([200, undefined]);
  const { data } = body;
  return data.filter(({ actor }: { actor: { id: number } }) => actor.id === id).reverse();
}

test('the first login from another prefix is in the audit next to the login, and the first of all is not', async () => {
  const { id, email, logIn } = await makeUser();
  await logIn('198.51.100.7');
  await logIn('198.51.100.250');
  expect(await noticesOf(id)).toEqual([]);
  await logIn('198.51.101.7');
  const [notice] = await noticesOf(id);
  expect(notice).toMatchObject({
    actor: { kind: 'user', id, name: email },
    target: { kind: 'session', id: expect.any(Number), name: 'laptop' },
    address: '198.51.101.7',
    details: { prefix: '198.51.101.0/24', known_prefixes: 1 },
  });
  await logIn('2001:db8:1::1');
  await logIn('2001:db8:1:ffff::1');
  await logIn('198.51.100.7');
  expect((await noticesOf(id)).map(({ details }: { details: object }) => details)).toEqual([
    { prefix: '198.51.101.0/24', known_prefixes: 1 },
    { prefix: '2001:db8:1::/48', known_prefixes: 2 },
  ]);
});

test('a change of the password opens a session, and so its prefix is new too', async () => {
  const { id, email, logIn, changePassword } = await makeUser();
  expect(await changePassword('198.51.100.7', '192.0.2.1')).toBe(200);
  expect(await noticesOf(id)).toMatchObject([
    {
      actor: { kind: 'user', id, name: email },
      target: { kind: 'session', id: expect.any(Number), name: 'laptop' },
      address: '192.0.2.1',
      details: { prefix: '192.0.2.0/24', known_prefixes: 1 },
    },
  ]);
  expect(await logIn('192.0.2.9', 'another long password')).toBe(200);
  expect(await noticesOf(id)).toHaveLength(1);
});

test('a wrong password makes no prefix known, and prefixes are those of one user', async () => {
  const [{ id, logIn }, other] = [await makeUser(), await makeUser()];
  await logIn('198.51.100.7');
  expect(await logIn('192.0.2.1', 'a wrong password')).toBe(401);
  await other.logIn('192.0.2.1');
  expect([await noticesOf(id), await noticesOf(other.id)]).toEqual([[], []]);
  await logIn('192.0.2.1');
  expect(await noticesOf(id)).toHaveLength(1);
});

test('the 100 last used prefixes are known, and they go with their user', async () => {
  const { id, logIn } = await makeUser();
  const stored = () =>
    withDatabase(plane.dataDir, (db) =>
      db.selectFrom('known_prefixes').select('prefix').where('user_id', '=', id).orderBy('last_used_at').execute(),
    );
  for (let net = 0; net < 100; net += 1) await logIn(`10.0.${net}.1`);
  await logIn('10.0.0.2');
  await logIn('10.1.0.1');
  const prefixes = (await stored()).map(({ prefix }) => prefix);
  expect([prefixes.length, prefixes[0], prefixes.slice(-2)]).toEqual([
    100,
    '10.0.2.0/24',
    ['10.0.0.0/24', '10.1.0.0/24'],
  ]);
  const before = (await noticesOf(id)).length;
  await logIn('10.0.1.1');
  expect((await noticesOf(id)).length).toBe(before + 1);
  const headers = { 'x-forwarded-for': '203.0.113.1' };
  expect((await plane.call('DELETE', `/api/users/${id}`, { token, headers })).status).toBe(200);
  expect(await stored()).toEqual([]);
});

test('logins at once from a new prefix give one notice', async () => {
  const { id, logIn } = await makeUser();
  await logIn('198.51.100.7');
  expect(await Promise.all(Array.from({ length: 6 }, () => logIn('192.0.2.1')))).toEqual(Array(6).fill(200));
  expect(await noticesOf(id)).toHaveLength(1);
});

test.each([
  ['192.0.2.129', '192.0.2.0/24'],
  ['::ffff:192.0.2.129', '192.0.2.0/24'],
  ['::ffff:c000:281', '192.0.2.0/24'],
  ['2001:DB8:1:2::3', '2001:db8:1::/48'],
  ['fe80::1%eth0', 'fe80::/48'],
  ['64:ff9b::192.0.2.129', '192.0.2.0/24'],
  ['64:ff9b::c000:281', '192.0.2.0/24'],
  ['64:ff9b:1::c000:281', '64:ff9b:1::/48'],
  ['::1', '::/48'],
  ['::192.0.2.1', null],
  ['', null],
  ['unix', null],
])('the prefix of %j is %j', (address, prefix) => {
  expect(widenAddress(address)).toBe(prefix);
});

test('an owner logs in from an address without a prefix', async () => {
  const headers = { 'x-forwarded-for': '::192.0.2.1' };
  expect((await plane.call('POST', '/api/auth/login', { body: owner, headers })).status).toBe(200);
});
