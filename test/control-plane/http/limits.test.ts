import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fastify } from 'fastify';
import { expect, onTestFinished, test } from 'vitest';
import type { Caller } from '../../../src/control-plane/domain/caller.ts';
import { verifyPassword } from '../../../src/control-plane/domain/passwords.ts';
import type { App } from '../../../src/control-plane/http/app.ts';
import { limitUserChanges } from '../../../src/control-plane/http/limits.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import {
  enroll,
  makeKey,
  makeNetwork,
  owner,
  type Plane,
  publicKey,
  type Reply,
  slowPasswords,
  startPlane,
  withDatabase,
} from '../harness.ts';

const minute = 60_000;
const statuses = (replies: Reply[]) => replies.map(({ status }) => status);
const count = (replies: Reply[], status: number) => statuses(replies).filter((is) => is === status).length;
const many = <Result>(times: number, work: () => Promise<Result>) => Promise.all(Array.from({ length: times }, work));
const login = (plane: Plane, password: string) =>
  plane.call('POST', '/api/auth/login', { body: { ...owner, password } });

function expectTooMany(reply: Reply, seconds: number): void {
  expect(reply.status).toBe(429);
  expect(reply.headers.get('retry-after')).toBe(String(seconds));
  expect(reply.body).toEqual({ message: expect.stringContaining(`${seconds} s`) });
}

test('ten failed logins a minute, even at once, and then not even the right password', async () => {
  const plane = await startPlane({ limits: {}, passwordCost: slowPasswords });
  for (let times = 0; times < 3; times += 1) expect((await login(plane, owner.password)).status).toBe(200);
  const replies = await many(14, () => login(plane, 'wrong'));
  expect([count(replies, 401), count(replies, 429)]).toEqual([10, 4]);
  plane.clock.advance(20_000);
  // The clock was ahead.
  plane.clock.setBack(24 * 60 * minute);
  expectTooMany(await login(plane, owner.password), 40);
  plane.clock.advance(40_000);
  expect((await login(plane, owner.password)).status).toBe(200);
});

test('a flood of logins waits in a short queue of its account, and those whose client has gone have no turn', async () => {
  const plane = await startPlane({ passwordCost: slowPasswords });
  const flooder = { email: 'viewer@example.net', password: 'the password of a viewer' };
  const token = await plane.signIn('owner');
  await plane.call('POST', '/api/users', { token, body: { ...flooder, role: 'viewer' } });
  const flood = many(60, () => plane.call('POST', '/api/auth/login', { body: flooder }));
  expect((await login(plane, owner.password)).status).toBe(200);
  const refused = (await flood).filter(({ status }) => status !== 200);
  expect(refused.length).toBeGreaterThan(0);
  for (const reply of refused) expectTooMany(reply, 1);

  const body = JSON.stringify({ ...flooder, device_name: 'gone' });
  const head = ['POST /api/auth/login HTTP/1.1', 'Host: x', 'Content-Type: application/json'];
  const request = [...head, `Content-Length: ${body.length}`, '', body].join('\r\n');
  const socket = connect(Number(new URL(plane.url).port), '127.0.0.1').on('error', () => undefined);
  socket.write(request.repeat(12));
  await once(socket, 'data');
  socket.destroy();
  // Last in the same queue.
  expect((await plane.call('POST', '/api/auth/login', { body: flooder })).status).toBe(200);
  const answered = await withDatabase(plane.dataDir, (db) =>
    db.selectFrom('sessions').select('id').where('name', '=', 'gone').execute(),
  );
  expect(answered.length).toBeLessThan(8);
});

test('failed logins at an address keep no session there from a new password or a token', async () => {
  const plane = await startPlane({ limits: {} });
  const { access_token: token } = (await login(plane, owner.password)).body.data;
  const { access_token: stolen } = (await login(plane, owner.password)).body.data;
  expect(count(await many(12, () => login(plane, 'wrong')), 429)).toBe(2);
  const create = (as: string, password: string) =>
    plane.call('POST', '/api/auth/tokens', { token: as, body: { name: 'ci', password } });
  const guesses = await many(12, () => create(stolen, 'wrong'));
  expect([count(guesses, 403), count(guesses, 429)]).toEqual([10, 2]);
  expect((await create(token, owner.password)).status).toBe(201);
  const body = { current_password: owner.password, new_password: 'another long password' };
  expect((await plane.call('PUT', '/api/auth/password', { token, body })).status).toBe(200);
});

test('a user makes so many changes at once, with all its tokens, and one more a second; removals go on', async () => {
  const plane = await startPlane({ limits: { userChanges: 3 } });
  const [token, other] = [await plane.signIn('member'), await plane.signIn('member')];
  const personal = await plane.call('POST', '/api/auth/tokens', { token, body: { name: 'ci' } });
  const network = await makeNetwork(plane, token);
  const path = `/api/networks/${network}`;
  let changes = 0;
  const change = (as: string) => {
    changes += 1;
    return plane.call('PATCH', path, { token: as, body: { description: `${changes}` } });
  };
  expect(statuses([await change(token), await change(token)])).toEqual([200, 200]);
  expectTooMany(await change(token), 1);
  expectTooMany(await change(personal.body.data.access_token), 1);
  expect([(await change(other)).status, (await plane.call('GET', path, { token })).status]).toEqual([200, 200]);
  plane.clock.advance(1000);
  expect(statuses([await change(token), await change(token)])).toEqual([200, 429]);
  // A thief of a token who uses up the changes does not keep its user from a new password, or from revoking the token.
  const short = { current_password: 'x', new_password: 'short' };
  expect((await plane.call('PUT', '/api/auth/password', { token, body: short })).status).toBe(422);
  const out = await plane.call('POST', '/api/auth/logout', { token: personal.body.data.access_token });
  expect(out.status).toBe(200);
  expect((await plane.call('DELETE', path, { token })).status).toBe(200);
});

test('what is refused is no change, and suspending, withdrawing and lowering a role are removals', async () => {
  const plane = await startPlane({ limits: { userChanges: 4 } });
  const token = await plane.signIn('owner');
  const routes = ['192.168.1.0/24', '192.168.2.0/24'];
  const network = await makeNetwork(plane, token, { routes });
  const path = `/api/networks/${network}`;
  const key = await makeKey(plane, token, network, { max_uses: 1 });
  const peer = (await enroll(plane, key, { peer_type: 'connector' })).body.data.peer.id;
  await plane.signIn('admin');
  const users = (await plane.call('GET', '/api/users', { token })).body.data as { id: number; role: string }[];
  const admin = users.find(({ role }) => role === 'admin')?.id;
  const patch = async (of: string, body: object) => (await plane.call('PATCH', of, { token, body })).status;
  for (let times = 0; times < 20; times += 1) expect(await patch('/api/networks/999', { description: 'x' })).toBe(404);
  // The network and the key were two; removals count too.
  expect(await patch(path, { description: 'third' })).toBe(200);
  expect(await patch(`/api/users/${admin}`, { role: 'member' })).toBe(200);
  expect(await patch(path, { description: 'fifth' })).toBe(429);

  const [first, second] = routes;
  expect(await patch(`${path}/peers/${peer}`, { withdrawn: [first] })).toBe(200);
  expect(await patch(`${path}/peers/${peer}`, { withdrawn: [second] })).toBe(429);
  expect(await patch(`${path}/peers/${peer}`, { withdrawn: [second, first] })).toBe(200);
  expect(await patch(`${path}/peers/${peer}`, { suspended: true, name: 'x' })).toBe(429);
  expect(await patch(`${path}/peers/${peer}`, { suspended: true })).toBe(200);
  expect(await patch(`${path}/peers/${peer}`, { suspended: false })).toBe(429);
  expect(await patch(`/api/users/${admin}`, { role: 'admin' })).toBe(429);
  expect(await patch(`/api/users/${admin}`, { role: 'viewer' })).toBe(200);
  expect((await plane.call('DELETE', `/api/users/${admin}/sessions`, { token })).body.data).toEqual({
    sessions_ended: 1,
  });
});

test.each([
  ...[200, 201, 500, 503, 504].map((status) => [status, 'counts', 500] as const),
  ...[400, 404, 409, 422].map((status) => [status, 'does not count', status] as const),
])('a change that gets a %i %s: only what was refused certainly changed nothing', async (status, _counts, next) => {
  const app = fastify();
  onTestFinished(() => app.close());
  app.decorateRequest('caller', null);
  app.addHook('onRequest', async (request) => {
    request.caller = { kind: 'user', userId: 1 } as Caller;
  });
  limitUserChanges(app as unknown as App, 1, () => 0);
  app.post('/', async (_request, reply) => reply.code(status).send());
  const send = async () => (await app.inject({ method: 'POST', url: '/' })).statusCode;
  // Without a handler for its errors, fastify replies to one beyond the limit with a 500.
  expect([await send(), await send()]).toEqual([status, next]);
});

test('a key counts as its uses, a network takes so many enrolments at once, and its new peers share their changes', async () => {
  const plane = await startPlane({ limits: { userChanges: 24, peerChanges: 2 } });
  const token = await plane.signIn('member');
  const network = await makeNetwork(plane, token);
  const path = `/api/networks/${network}`;
  const keys = [await makeKey(plane, token, network), await makeKey(plane, token, network)];
  const body = { name: 'k', max_uses: 10 };
  expectTooMany(await plane.call('POST', `${path}/enrollment-keys`, { token, body }), 7);
  keys.push(await makeKey(plane, token, network, { max_uses: 3 }));

  const other = await plane.signIn('member');
  keys.push(await makeKey(plane, other, network));
  const replies: Reply[] = [];
  for (let index = 0; index < 26; index += 1) replies.push(await enroll(plane, keys[Math.floor(index / 10)] ?? ''));
  expect(statuses(replies)).toEqual([...Array(23).fill(201), 403, 403, 403]);
  expect((await enroll(plane, keys[3] ?? '')).status).toBe(201);
  expectTooMany(await enroll(plane, keys[3] ?? ''), 1);
  plane.clock.advance(1000);
  expect((await enroll(plane, keys[3] ?? '')).status).toBe(201);
  const listed = (await plane.call('GET', `${path}/enrollment-keys?all=true`, { token })).body.data;
  expect(listed.map(({ uses }: { uses: number }) => uses).sort()).toEqual([10, 10, 2, 3]);

  let names = 0;
  const rename = ({ body: { data } }: Reply) => {
    names += 1;
    const request = { token: data.access_token, body: { name: `n${names}` } };
    return plane.call('PATCH', `${path}/peers/${data.peer.id}`, request);
  };
  const changes: Reply[] = [];
  for (const reply of replies.slice(0, 10)) changes.push(await rename(reply));
  expect([count(changes, 200), count(changes, 429)]).toEqual([8, 2]);
  const [first] = replies;
  if (!first) throw new Error('the first peer enrolled');
  // After an hour a peer has a limit of its own.
  plane.clock.advance(3600 * 1000);
  expect(statuses([await rename(first), await rename(first), await rename(first)])).toEqual([200, 200, 429]);
});

test('twenty failed enrolments a minute, even at once; a refusal for that takes no use of a key', async () => {
  const plane = await startPlane({ limits: {} });
  const token = await plane.signIn('owner');
  const network = await makeNetwork(plane, token);
  const key = await makeKey(plane, token, network);
  const replies = await many(30, () => enroll(plane, `cpn_${publicKey()}`));
  expect([count(replies, 401), count(replies, 429)]).toEqual([20, 10]);
  expectTooMany(await enroll(plane, key), 60);
  const keys = await plane.call('GET', `/api/networks/${network}/enrollment-keys?all=true`, { token });
  expect(keys.body.data[0].uses).toBe(0);
  plane.clock.advance(minute);
  expect((await enroll(plane, key)).status).toBe(201);
});

test('a used-up key counts as a failure, a broken field does not', async () => {
  const plane = await startPlane({ limits: { failedEnrollments: 2 } });
  const token = await plane.signIn('owner');
  const key = await makeKey(plane, token, await makeNetwork(plane, token), { max_uses: 1 });
  await enroll(plane, key);
  const replies: Reply[] = [];
  for (const endpoint of ['bad', 'bad', 'bad', undefined, undefined, undefined]) {
    replies.push(await enroll(plane, key, { endpoint }));
  }
  expect(statuses(replies)).toEqual([422, 422, 422, 403, 403, 429]);
});

test('a used-up key counts as a failure also where it comes with the networks that the host is in', async () => {
  const plane = await startPlane({ limits: { failedEnrollments: 2 } });
  const token = await plane.signIn('owner');
  const network = await makeNetwork(plane, token);
  const key = await makeKey(plane, token, network, { max_uses: 1 });
  await enroll(plane, key);
  const headers = { 'current-networks': `${network}`, 'current-peers': 'x'.repeat(43) };
  const body = { enrollment_token: key, name: 'x', public_key: publicKey() };
  const replies: Reply[] = [];
  for (let times = 0; times < 3; times += 1) {
    replies.push(await plane.call('POST', '/api/networks/enroll', { body, headers }));
  }
  expect(statuses(replies)).toEqual([403, 403, 429]);
});

test('a fleet of 100 hosts behind one address enrols at once', async () => {
  const plane = await startPlane({ limits: {} });
  const token = await plane.signIn('owner');
  const network = await makeNetwork(plane, token);
  const keys = await Promise.all(Array.from({ length: 10 }, () => makeKey(plane, token, network)));
  const replies = await Promise.all(keys.flatMap((key) => Array.from({ length: 10 }, () => enroll(plane, key))));
  expect(count(replies, 201)).toBe(100);
});

test('requests of every kind count, those that match no route too', async () => {
  const plane = await startPlane({ limits: { requests: 5 } });
  const replies: Reply[] = [];
  for (const path of ['/healthz', '/nowhere', '/api/networks', '/docs/api/openapi.json', '/healthz']) {
    replies.push(await plane.call('GET', path));
  }
  expect(statuses(replies)).toEqual([200, 404, 401, 200, 200]);
  for (const path of ['/healthz', '/nowhere', '/api/networks']) expectTooMany(await plane.call('GET', path), 60);
  plane.clock.advance(minute);
  expect((await plane.call('GET', '/healthz')).status).toBe(200);
});

test('a key works from elsewhere, however many guesses are made at one that begins like it', async () => {
  const plane = await startPlane({ limits: { failedEnrollments: 3 }, proxies: [parsePrefix('127.0.0.1/32')] });
  const token = await plane.signIn('owner');
  const key = await makeKey(plane, token, await makeNetwork(plane, token));
  const from = (address: string, enrollmentKey: string) => {
    const headers = { 'x-forwarded-for': address };
    const call: Plane['call'] = (method, path, options) => plane.call(method, path, { ...options, headers });
    return enroll({ call }, enrollmentKey);
  };
  const guess = () => key.slice(0, 12) + publicKey().slice(0, 35).replaceAll(/[+/]/g, 'x');
  const guesses = await many(4, () => from('203.0.113.7', guess()));
  expect([count(guesses, 401), count(guesses, 429)]).toEqual([3, 1]);
  expect((await from('203.0.113.8', key)).status).toBe(201);
});

test('a flood of logins from one prefix keeps no login from elsewhere waiting', async () => {
  const plane = await startPlane({ proxies: [parsePrefix('127.0.0.1/32')] });
  let over = false;
  // More than run and wait at once, each from an address of its own, and at it again as soon as it was answered.
  const flood = Array.from({ length: 80 }, async (_, index) => {
    while (!over) {
      const attempt = verifyPassword(new Secret('x'), null, { N: 2 ** 12, r: 8, p: 1 }, `203.0.113.${index}`);
      await attempt.catch(() => sleep(1));
    }
  });
  const statusFrom = async (address: string) => {
    const headers = { 'x-forwarded-for': address };
    return (await plane.call('POST', '/api/auth/login', { body: owner, headers })).status;
  };
  const elsewhere = ['198.51.100.7', '198.51.100.8', '203.0.114.1', '2001:db8:0:1::7'];
  expect(await Promise.all(elsewhere.map(statusFrom))).toEqual([200, 200, 200, 200]);
  over = true;
  await Promise.all(flood);
});

/** An address, others that are the same client, and others that are not: of IPv6 one customer has a /64. */
const families = {
  IPv4: {
    same: ['203.0.113.7', '::ffff:203.0.113.7', '[::ffff:203.0.113.7]:4711', '203.0.113.7:4711'],
    others: ['203.0.113.8', '::ffff:203.0.113.9', '2001:db8:0:1::7'],
  },
  IPv6: {
    same: ['2001:db8:0:1::7', '2001:db8:0:1::8', '[2001:DB8:0:1:ffff:ffff:ffff:ffff]:4711', '2001:0db8:0000:0001::9'],
    others: ['2001:db8:0:2::7', '2001:db8::7', '2001:db9:0:1::7', '203.0.113.7'],
  },
};
const budgets = {
  'failed logins': { limits: { failedLogins: 2 }, path: '/api/auth/login', status: 401 },
  'failed enrolments': { limits: { failedEnrollments: 2 }, path: '/api/networks/enroll', status: 401 },
  requests: { limits: { requests: 2 }, path: '/api/networks', status: 401 },
};
const pairs = Object.entries(budgets).flatMap(([what, budget]) =>
  Object.entries(families).map(([family, addresses]) => ({ what, budget, family, addresses })),
);

test.each(pairs)('$what of one $family client are counted together, and those of others apart', async (row) => {
  const { budget, addresses } = row;
  const plane = await startPlane({ limits: budget.limits, proxies: [parsePrefix('127.0.0.1/32')] });
  const body = { email: owner.email, password: 'wrong', enrollment_token: 'cpn_x', name: 'n', public_key: publicKey() };
  const send = async (address: string) => {
    const headers = { 'x-forwarded-for': address };
    return (await plane.call('POST', budget.path, { body, headers })).status;
  };
  const statuses: number[] = [];
  for (const address of addresses.same) statuses.push(await send(address));
  expect(statuses).toEqual([budget.status, budget.status, 429, 429]);
  for (const address of addresses.others) expect([address, await send(address)]).toEqual([address, budget.status]);
});
