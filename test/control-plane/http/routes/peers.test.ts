import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  closePlane,
  enroll,
  makeKey,
  makeNetwork,
  openPlane,
  type Plane,
  publicKey,
  withDatabase,
} from '../../harness.ts';
import { untagged } from '../../push/long-poll.ts';

interface Enrolled {
  readonly id: number;
  readonly token: string;
  readonly public_key: string;
}

let plane: Plane;
let token: string;
let network: number;
let key: string;
let connector: Enrolled;
let origin: Enrolled;

beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('member');
});
afterAll(() => closePlane(plane));
beforeEach(async () => {
  network = await makeNetwork(plane, token, { routes: ['192.168.1.0/24', '192.168.2.0/24'] });
  key = await makeKey(plane, token, network);
  connector = await join({ peer_type: 'connector', endpoint: '203.0.113.1:51820' });
  origin = await join({ peer_type: 'origin' });
});

async function join(fields: object): Promise<Enrolled> {
  const { data } = (await enroll(plane, key, fields)).body;
  return { id: data.peer.id, public_key: data.peer.public_key, token: data.access_token };
}

const path = (peer: Enrolled, of = network) => `/api/networks/${of}/peers/${peer.id}`;
const change = (peer: Enrolled, body: unknown, as = token) => plane.call('PATCH', path(peer), { token: as, body });
const remove = (peer: Enrolled, as = token) => plane.call('DELETE', path(peer), { token: as });
const read = async (as = token) => (await plane.call('GET', `/api/networks/${network}`, { token: as })).body.data;

describe('changing a peer', () => {
  test('sets what is given, leaves the rest, and counts the revision of the network up', async () => {
    const public_key = publicKey();
    const reply = await change(connector, {
      name: 'gw',
      endpoint: '[2001:DB8::1]:1',
      public_key,
      address: '10.77.0.9',
    });
    expect(reply.status).toBe(200);
    expect(reply.body).toEqual({
      data: {
        id: connector.id,
        name: 'gw',
        peer_type: 'connector',
        public_key,
        address: '10.77.0.1',
        endpoint: '[2001:db8::1]:1',
        serving_since: expect.any(String),
        created_at: expect.any(String),
      },
    });
    const after = await read();
    expect([after.revision, after.peers[0]]).toEqual([4, reply.body.data]);
  });

  test('null takes the endpoint, or the limit on routes, away', async () => {
    expect((await change(connector, { endpoint: null })).body.data.endpoint).toBeNull();
    expect((await change(connector, { routes: ['192.168.2.0/24'] })).body.data.routes).toEqual(['192.168.2.0/24']);
    expect((await change(connector, { routes: [] })).body.data.routes).toEqual([]);
    expect((await change(connector, { routes: null })).body.data).not.toHaveProperty('routes');
    expect((await read()).revision).toBe(7);
  });

  test('what is so already makes no revision', async () => {
    const same = { name: 'edge', endpoint: '203.0.113.1:51820', public_key: connector.public_key, routes: null };
    for (const body of [{}, same]) expect((await change(connector, body)).status).toBe(200);
    expect((await read()).revision).toBe(3);
  });

  test('the key that a peer had before is kept for it: no other takes it, and it may go back', async () => {
    const { public_key: older } = origin;
    const newer = publicKey();
    expect((await change(origin, { public_key: newer }, origin.token)).status).toBe(200);
    // What is no change of keys lets go of none.
    expect((await change(origin, { name: 'moved' }, origin.token)).status).toBe(200);
    const before = (await read()).revision;
    const taking = [
      await change(connector, { public_key: older }, connector.token),
      await change(connector, { public_key: older }),
      await enroll(plane, key, { public_key: older }),
    ];
    const kept = 'is kept for another peer, which had it before its last change of keys; make another key pair';
    for (const { status, body } of taking) expect([status, body.errors]).toEqual([422, { public_key: [kept] }]);
    expect((await read()).revision).toBe(before);
    expect((await change(origin, { public_key: older }, origin.token)).body.data.public_key).toBe(older);
    expect((await change(connector, { public_key: newer }, connector.token)).status).toBe(422);
    // One change later it is free, and so it is when the peer is gone.
    expect((await change(origin, { public_key: publicKey() }, origin.token)).status).toBe(200);
    expect((await change(connector, { public_key: newer }, connector.token)).status).toBe(200);
    await remove(origin);
    expect((await enroll(plane, key, { public_key: older })).status).toBe(201);
  });

  test('a route that the network no longer has is not shown as served', async () => {
    await change(connector, { routes: ['192.168.1.0/24', '192.168.2.0/24'] });
    await plane.call('PATCH', `/api/networks/${network}`, { token, body: { routes: ['192.168.2.0/24'] } });
    expect((await read()).peers[0].routes).toEqual(['192.168.2.0/24']);
  });

  test.each([
    [{ name: ' ' }, ['name']],
    [{ public_key: 'x' }, ['public_key']],
    [{ endpoint: 'nowhere' }, ['endpoint']],
    [{ endpoint: '' }, ['endpoint']],
    [{ routes: ['192.168.3.0/24'] }, ['routes']],
    [{ routes: ['192.168.1.1/24'], endpoint: 'nowhere' }, ['endpoint', 'routes']],
  ])('%j is a 422 and changes nothing', async (body, names) => {
    const reply = await change(connector, body);
    expect([reply.status, Object.keys(reply.body.errors).sort()]).toEqual([422, names]);
    expect((await read()).revision).toBe(3);
  });

  test('the public key of another peer is a 422', async () => {
    const reply = await change(connector, { public_key: origin.public_key });
    expect([reply.status, Object.keys(reply.body.errors)]).toEqual([422, ['public_key']]);
    expect((await read()).revision).toBe(3);
  });

  test('only a connector serves routes', async () => {
    const reply = await change(origin, { routes: ['192.168.1.0/24'] });
    expect([reply.status, Object.keys(reply.body.errors)]).toEqual([422, ['routes']]);
  });
});

describe('removing a peer', () => {
  test('takes it out of the network and voids its token', async () => {
    const reply = await remove(connector);
    expect([reply.status, reply.body]).toEqual([200, { data: null }]);
    const after = await read();
    expect([after.revision, after.peers.map(({ id }: { id: number }) => id)]).toEqual([4, [origin.id]]);
    expect((await plane.call('GET', `/api/networks/${network}`, { token: connector.token })).status).toBe(401);
    expect((await remove(connector)).status).toBe(404);
    expect((await read()).revision).toBe(4);
  });
});

describe('a peer by its own token', () => {
  test('reads its network, with its ETag', async () => {
    const reply = await plane.call('GET', `/api/networks/${network}`, { token: origin.token });
    expect([reply.status, untagged(reply.headers.get('etag'))]).toEqual([200, '"3"']);
    expect(reply.body.data).toEqual(await read());
  });

  test('changes itself, but not its routes', async () => {
    expect((await change(connector, { endpoint: '203.0.113.9:51820' }, connector.token)).status).toBe(200);
    for (const routes of [[], null, ['192.168.1.0/24']]) {
      expect((await change(connector, { name: 'x', routes }, connector.token)).status).toBe(403);
    }
    expect((await read()).peers[0]).toMatchObject({ name: 'edge', endpoint: '203.0.113.9:51820' });
  });

  test.each([
    [{ routes: [] }, 'which routes it serves'],
    [{ priority: 1 }, 'its priority'],
    [{ suspended: true }, 'whether it is suspended'],
    [{ name: 'edge', expires_at: null }, 'when it expires'],
  ])('is refused to change %j of itself', async (body, field) => {
    const reply = await change(connector, body, connector.token);
    const message = `a peer may not change ${field}; ask an owner, admin or member`;
    expect(reply).toMatchObject({ status: 403, body: { message } });
  });

  test('keeps its token when it changes its key pair', async () => {
    await change(connector, { public_key: publicKey() }, connector.token);
    expect((await read(connector.token)).revision).toBe(4);
  });

  test('removes itself', async () => {
    expect((await remove(origin, origin.token)).status).toBe(200);
    expect((await remove(origin, origin.token)).status).toBe(401);
  });

  test('may do nothing to another peer', async () => {
    expect((await change(connector, { name: 'x' }, origin.token)).status).toBe(403);
    expect((await remove(connector, origin.token)).status).toBe(403);
    expect((await read()).revision).toBe(3);
  });

  test('finds no other network, not even of its own organization', async () => {
    const elsewhere = await makeNetwork(plane, token);
    const theirs = await enroll(plane, await makeKey(plane, token, elsewhere));
    const as = { token: origin.token, body: { name: 'x' } };
    const peer = `/api/networks/${elsewhere}/peers/${theirs.body.data.peer.id}`;
    expect((await plane.call('GET', `/api/networks/${elsewhere}`, { token: origin.token })).status).toBe(404);
    expect((await plane.call('PATCH', peer, as)).status).toBe(404);
    expect((await plane.call('DELETE', peer, { token: origin.token })).status).toBe(404);
    expect((await plane.call('PATCH', path(origin, elsewhere), as)).status).toBe(404);
  });
});

test('a peer is not there under another network, and an unknown one not at all', async () => {
  const elsewhere = await makeNetwork(plane, token);
  const body = { name: 'x' };
  expect((await plane.call('PATCH', path(origin, elsewhere), { token, body })).status).toBe(404);
  expect((await plane.call('DELETE', path(origin, elsewhere), { token })).status).toBe(404);
  expect((await change({ ...origin, id: 99999 }, body)).body).toEqual({ message: 'there is no such peer' });
  expect((await read()).revision).toBe(3);
});

test.each([
  [0, true],
  [60_000, true],
  [60_001, false],
])('the key of an enrolment that took %i ms is known by the audit: %s', async (ms, isKnown) => {
  const key = await makeKey(plane, token, network, { name: 'rack 8' });
  const { id, created_at } = (await enroll(plane, key)).body.data.peer;
  const at = new Date(Date.parse(created_at) + ms).toISOString();
  await withDatabase(plane.dataDir, (db) =>
    db
      .updateTable('audit_entries')
      .set({ at })
      .where('action', '=', 'peer.enroll')
      .where('target_id', '=', id)
      .execute(),
  );
  const { body } = await plane.call('GET', `/api/networks/${network}/peers/${id}`, { token });
  expect(body.data.enrollment_key?.name ?? null).toBe(isKnown ? 'rack 8' : null);
});

test('people read one peer, with the key of its enrolment, and a suspended one too', async () => {
  const key = await makeKey(plane, token, network, { name: 'rack 7' });
  const repeated = await enroll(plane, key, { name: 'repeated' }, 'an idempotency key of a host');
  const once = await enroll(plane, key, { name: 'once' });
  for (const { body } of [repeated, once]) {
    const reply = await plane.call('GET', `/api/networks/${network}/peers/${body.data.peer.id}`, { token });
    expect(reply.body.data).toEqual({ ...body.data.peer, enrollment_key: { id: expect.any(Number), name: 'rack 7' } });
  }
  await change(origin, { suspended: true });
  const suspended = await plane.call('GET', path(origin), { token });
  expect(suspended.body.data).toMatchObject({ id: origin.id, suspended_at: expect.any(String) });
  expect(await plane.call('GET', `/api/networks/${network}/peers/99999`, { token })).toMatchObject({ status: 404 });
});
