import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type CallOptions,
  closePlane,
  enroll,
  makeKey,
  makeNetwork,
  openPlane,
  owner,
  type Plane,
  publicKey,
} from '../harness.ts';

let plane: Plane;
let token: string;
let network: number;
let key: string;
beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('owner');
  network = await makeNetwork(plane, token, { routes: ['192.168.1.0/24'] });
  key = await makeKey(plane, token, network);
});
afterAll(() => closePlane(plane));

const create = (path: string, body: object) => plane.call('POST', path, { token, body });
const change = (path: string, body: object) => plane.call('PATCH', path, { token, body });

test.each(['\u200b', ' \u2060\ufe0f', '\u00a0', '\u3164', '\u2800'])(
  'a name of %j, of which nothing is seen, is empty',
  async (name) => {
    const { status, body } = await create('/api/networks', { name, private_cidr: '10.99.0.0/24' });
    expect([status, body.errors]).toEqual([422, { name: ['must not be empty'] }]);
  },
);

test('the audit is not read after an entry, which would be ignored', async () => {
  const { status, body } = await plane.call('GET', '/api/audit?after=1', { token });
  expect([status, body.errors]).toEqual([422, { after: ['is not for the audit, which is newest first; use before'] }]);
});

describe('a 422 names every field that breaks a rule', () => {
  test('it names the fields of a new network', async () => {
    const { status, body } = await create('/api/networks', { name: '', private_cidr: 'x' });
    expect([status, body]).toEqual([
      422,
      {
        message: 'the request breaks a rule for name, private_cidr',
        errors: {
          name: ['must not be empty'],
          private_cidr: ['"x" is not an address range; write it like 10.77.0.0/24'],
        },
      },
    ]);
    const all = await create('/api/networks', {
      name: 7,
      private_cidr: '8.8.8.0/24',
      routes: ['9.9.9.0/24'],
      description: 'x'.repeat(1001),
    });
    expect(Object.keys(all.body.errors).sort()).toEqual(['description', 'name', 'private_cidr', 'routes']);
  });

  test('it names the fields of a changed network', async () => {
    const { status, body } = await change(`/api/networks/${network}`, { name: '', routes: ['10.77.0.0/25'] });
    expect([status, body.errors]).toEqual([
      422,
      { name: ['must not be empty'], routes: [`"10.77.0.0/25" overlaps the network's own range 10.77.0.0/24`] },
    ]);
  });

  test('it names the fields of an enrolment key', async () => {
    const path = `/api/networks/${network}/enrollment-keys`;
    const { status, body } = await create(path, { name: '', max_uses: 11, routes: ['192.168.2.0/24'] });
    expect([status, Object.keys(body.errors).sort()]).toEqual([422, ['max_uses', 'name', 'routes']]);
  });

  test('it names the fields of an enrolment, which takes no use', async () => {
    const fields = { name: '', endpoint: 'nowhere', public_key: `${'A'.repeat(42)}B=` };
    const { status, body } = await enroll(plane, key, fields);
    expect([status, Object.keys(body.errors).sort()]).toEqual([422, ['endpoint', 'name', 'public_key']]);
    const taken = { public_key: publicKey() };
    await enroll(plane, key, taken);
    const inside = await enroll(plane, key, { ...taken, endpoint: '192.168.1.7:1' });
    expect(Object.keys(inside.body.errors).sort()).toEqual(['endpoint', 'public_key']);
  });

  test('it names the fields of a peer, also those that other peers decide', async () => {
    const other = (await enroll(plane, key, { name: 'taken' })).body.data.peer;
    const { id } = (await enroll(plane, key, { name: 'edge' })).body.data.peer;
    const path = `/api/networks/${network}/peers/${id}`;
    const wrong = { name: 'Taken', public_key: other.public_key, endpoint: '10.77.0.9:1', priority: 1 };
    const all = ['endpoint', 'name', 'priority', 'public_key'];
    const { status, body } = await change(path, wrong);
    expect([status, Object.keys(body.errors).sort()]).toEqual([422, all]);
    const more = await change(path, { ...wrong, withdrawn: 7 });
    expect(Object.keys(more.body.errors).sort()).toEqual([...all, 'withdrawn']);
  });

  test('it names the fields of a user', async () => {
    const { status, body } = await create('/api/users', { email: owner.email, password: 'short', role: 'king' });
    expect([status, Object.keys(body.errors).sort()]).toEqual([422, ['email', 'password', 'role']]);
  });

  test('it tells another organization nothing of ours', async () => {
    const foreigner = await plane.signIn('owner', await plane.addOrganization('other'));
    const body = { name: '', routes: ['10.77.0.0/25'] };
    const reply = await plane.call('PATCH', `/api/networks/${network}`, { token: foreigner, body });
    expect([reply.status, reply.body.errors]).toEqual([422, { name: ['must not be empty'] }]);
  });
});

describe('null in a field that may be left out', () => {
  test('counts as left out', async () => {
    const login = await plane.call('POST', '/api/auth/login', { body: { ...owner, device_name: null } });
    expect(login.status).toBe(200);
    const nothing = { description: null, routes: null, vpn_type: null };
    const made = await create('/api/networks', { name: 'null', private_cidr: '10.9.0.0/24', ...nothing });
    expect([made.status, made.body.data]).toEqual([201, expect.objectContaining({ description: '', routes: [] })]);
    const { id } = made.body.data;
    const changed = await change(`/api/networks/${id}`, { name: null, routes: ['192.168.7.0/24'] });
    expect(changed.body.data).toMatchObject({ name: 'null', routes: ['192.168.7.0/24'] });
    const keys = `/api/networks/${id}/enrollment-keys`;
    const limits = { max_uses: null, expires_in_hours: null, peer_types: null, routes: null };
    const made2 = (await create(keys, { name: 'k', ...limits })).body.data;
    expect(made2).toMatchObject({ max_uses: 1, enrollment_token: expect.any(String) });
    const enrolled = await enroll(plane, made2.enrollment_token, { endpoint: null, peer_type: null });
    expect(enrolled.body.data.peer).toMatchObject({ endpoint: null, peer_type: 'origin' });
    const body = { name: 'ci', expires_in_days: null };
    const session = login.body.data.access_token;
    expect((await plane.call('POST', '/api/auth/tokens', { token: session, body })).body.data.expires_at).toBeNull();
  });

  test('is nothing in a field that no schema has, even by the name of a property of every object', async () => {
    const { status } = await create('/api/networks', { private_cidr: '10.8.0.0/24', name: 'odd', constructor: null });
    expect(status).toBe(201);
    const login = await plane.call('POST', '/api/auth/login', { body: { toString: null, hasOwnProperty: null } });
    expect([login.status, Object.keys(login.body.errors)]).toEqual([422, ['email', 'password']]);
  });

  test('takes away where it says so, and is no value for a field that must be there', async () => {
    const { peer } = (await enroll(plane, key, { name: 'moving', endpoint: '203.0.113.7:51820' })).body.data;
    const path = `/api/networks/${network}/peers/${peer.id}`;
    const changed = await change(path, { endpoint: null, name: null, priority: null });
    expect([changed.status, changed.body.data]).toEqual([
      200,
      expect.objectContaining({ endpoint: null, name: 'moving' }),
    ]);
    const { body } = await create('/api/networks', { name: null, private_cidr: null });
    expect(Object.keys(body.errors)).toEqual(['name', 'private_cidr']);
  });
});

describe('a path that does not take the method', () => {
  test.each([
    ['PUT', '/api/networks', 'GET, HEAD, OPTIONS, POST'],
    ['GET', '/api/auth/login?next=1', 'OPTIONS, POST'],
    ['GET', '/api/networks/enroll', 'OPTIONS, POST'],
    ['DELETE', '/api/networks/enroll', 'OPTIONS, POST'],
    ['POST', '/api/networks/1', 'DELETE, GET, HEAD, OPTIONS, PATCH'],
    ['PUT', '/api/networks/1/peers/2', 'DELETE, GET, HEAD, OPTIONS, PATCH'],
    ['POST', '/healthz', 'GET, HEAD, OPTIONS'],
  ])('%s %s is a 405 that allows %s, for any caller', async (method, path, allow) => {
    for (const as of [token, undefined]) {
      const { status, headers, body } = await plane.call(method, path, { token: as, ...xml(method) });
      expect([status, headers.get('allow')]).toEqual([405, allow]);
      expect(body).toEqual({ message: `the path does not take ${method}; it takes ${allow}` });
    }
  });

  test('is a 404 where there is none', async () => {
    for (const path of ['/api/nowhere', '/api/networks/1/nowhere', '//', '//x/y']) {
      expect([path, (await plane.call('PUT', path)).status]).toEqual([path, 404]);
    }
  });
});

describe('an e-mail address is what HTML takes for one', () => {
  const password = 'a long enough password';
  const use = (email: string) => create('/api/users', { email, password, role: 'viewer' });

  test.each([
    'root@localhost',
    "o'brien+cpn@example.net",
    'a..b.@example.net',
    '!#$%&*+/=?^_`{|}~-@xn--bcher-kva.example',
    `x@${'a'.repeat(63)}.example`,
  ])('%s is one, which logs in and is shown', async (email) => {
    expect((await use(email)).status).toBe(201);
    const login = await plane.call('POST', '/api/auth/login', { body: { email, password } });
    const me = await plane.call('GET', '/api/auth/me', { token: login.body.data.access_token });
    expect(me.body.data.email).toBe(email);
  });

  test.each(['owner', '@example.net', 'a@', 'a@b..c', 'a@-b.c', 'a b@c.d', `x@${'a'.repeat(64)}.example`, 'a@b\n'])(
    '%j is none',
    async (email) => {
      const { status, body } = await use(email);
      expect([status, body.errors]).toEqual([422, { email: ['must be an e-mail address'] }]);
    },
  );
});

/** A body that is not JSON, with a method that may have one. */
function xml(method: string): CallOptions {
  return method === 'GET' ? {} : { raw: '<', headers: { 'content-type': 'text/xml' } };
}
