import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  closePlane,
  enroll,
  hour,
  makeKey,
  makeNetwork,
  openPlane,
  type Plane,
  publicKey,
  type Reply,
  startPlane,
  withDatabase,
} from '../../harness.ts';

let plane: Plane;
let token: string;
let network: number;
beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('admin');
});
afterAll(() => closePlane(plane));
beforeEach(async () => {
  token = await plane.signIn('admin');
  network = await makeNetwork(plane, token, { private_cidr: '10.77.0.0/29' });
});

const keyPath = () => `/api/networks/${network}/enrollment-keys`;
const uses = async () => (await plane.call('GET', keyPath(), { token })).body.data[0].uses;
const readAs = (bearer: string) => plane.call('GET', `/api/networks/${network}`, { token: bearer });
const addresses = (replies: Reply[]) => replies.map(({ body }) => body.data.peer.address);

describe('a host enrols', () => {
  test('it gets its peer, its network and a token of its own', async () => {
    const key = await makeKey(plane, token, network);
    const public_key = publicKey();
    const fields = { name: 'edge-1', peer_type: 'connector', public_key, endpoint: 'Edge.example.net:51820' };
    const { status, body } = await enroll(plane, key, { ...fields, extra: 'ignored' });
    expect(status).toBe(201);
    const peer = {
      id: expect.any(Number),
      name: 'edge-1',
      peer_type: 'connector',
      public_key,
      address: '10.77.0.1',
      endpoint: 'edge.example.net:51820',
      serving_since: '2030-01-01T00:00:00.000Z',
      created_at: '2030-01-01T00:00:00.000Z',
    };
    expect(body).toEqual({
      data: {
        peer,
        network: {
          id: network,
          name: 'office',
          description: '',
          private_cidr: '10.77.0.0/29',
          routes: [],
          vpn_type: 'wireguard',
          revision: 2,
          etag: body.data.network_etag,
          nonce: expect.stringMatching(/^[\w-]{12}$/),
          relay: expect.any(Number),
          peers: [peer],
        },
        access_token: expect.stringMatching(/^cpp_[\w-]{43}$/),
        network_etag: expect.stringMatching(/^"2-[\w-]{12}"$/),
      },
    });
    const own = await readAs(body.data.access_token);
    expect([own.body.data, own.headers.get('etag')]).toEqual([body.data.network, body.data.network_etag]);
  });

  test('it needs only the required fields', async () => {
    const key = await makeKey(plane, token, network);
    const reply = await plane.call('POST', '/api/networks/enroll', {
      body: { enrollment_token: key, name: 'x', public_key: publicKey() },
    });
    expect(reply.body.data.peer).toMatchObject({ peer_type: 'origin', endpoint: null });
  });

  test('its access token differs from all others', async () => {
    const key = await makeKey(plane, token, network);
    const replies = [await enroll(plane, key), await enroll(plane, key, {}, 'a'), await enroll(plane, key, {}, 'a')];
    expect(new Set(replies.map(({ body }) => body.data.access_token)).size).toBe(3);
  });
});

describe('a host that is in networks', () => {
  const enrolIn = async (key: string, current: string, headers: Record<string, string> = {}) =>
    plane.call('POST', '/api/networks/enroll', {
      body: { enrollment_token: key, name: 'x', public_key: firstKey },
      headers: { 'current-networks': current, ...headers },
    });
  const firstKey = publicKey();

  test('is refused with a key for one of them, and its use stays; a repetition is none', async () => {
    const key = await makeKey(plane, token, network);
    const refused = await enrolIn(key, `999, ${network}`);
    expect([refused.status, refused.body]).toEqual([
      409,
      { message: `the enrolment key is for network office (${network}), which this host is in already` },
    ]);
    expect(await uses()).toBe(0);
    const repeated = { 'idempotency-key': 'a' };
    const { body } = await enrolIn(key, '999', repeated);
    expect((await enrolIn(key, `${network}`, repeated)).body.data.peer.id).toBe(body.data.peer.id);
    expect(await uses()).toBe(1);
  });

  test.each(['', 'x', '1,3', '1, '])('names them by their ids: not %j', async (current) => {
    const { status, body } = await enrolIn(await makeKey(plane, token, network), current);
    const rule = 'must be at most 100 ids, each after a comma and a space';
    expect([status, body.errors]).toEqual([422, { 'current-networks': [rule] }]);
  });
});

describe('a host that knows the network by another address', () => {
  const digest = (key: string, address: string) => createHash('sha256').update(`${key} ${address}`).digest('base64url');

  test('is refused by the digest of its public key and address, and no use is taken; others are not', async () => {
    const key = await makeKey(plane, token, network);
    const known = publicKey();
    const body = { enrollment_token: key, name: 'edge', public_key: known };
    const { body: first } = await plane.call('POST', '/api/networks/enroll', { body });
    const { address } = first.data.peer;
    const again = (...known: [string, string][]) =>
      plane.call('POST', '/api/networks/enroll', {
        body: { ...body, public_key: publicKey() },
        headers: { 'current-peers': known.map((each) => digest(...each)).join(', ') },
      });
    const refused = await again([publicKey(), address], [known, address]);
    expect([refused.status, refused.body.message]).toEqual([
      412,
      `the enrolment key is for network office (${network}), which lists this host already, as edge (${first.data.peer.id})`,
    ]);
    expect(await uses()).toBe(1);
    expect((await again([publicKey(), address])).status).toBe(201);
    // A peer can set its key to that of another host, which has another address.
    expect((await again([known, '10.77.0.200'])).status).toBe(201);
  });

  test('learns nothing of the network with a key that is used up or has expired: 403, as without these headers', async () => {
    const usedUp = await makeKey(plane, token, network, { max_uses: 1, expires_in_hours: 2 });
    const expired = await makeKey(plane, token, network, { expires_in_hours: 1 });
    const known = publicKey();
    const { address } = (await enroll(plane, usedUp, { public_key: known })).body.data.peer;
    plane.clock.advance(hour);
    const ask = async (key: string, headers: Record<string, string>) => {
      const fields = { enrollment_token: key, name: 'edge', public_key: publicKey() };
      const { status, body } = await plane.call('POST', '/api/networks/enroll', { body: fields, headers });
      return [status, body.message];
    };
    for (const headers of [{ 'current-peers': digest(known, address) }, { 'current-networks': `${network}` }]) {
      expect(await ask(usedUp, headers)).toEqual([403, 'the enrolment key is used up']);
      expect(await ask(expired, headers)).toEqual([403, 'the enrolment key has expired']);
    }
  });

  test.each(['', 'x', publicKey()])('gives digests and nothing else: not %j', async (header) => {
    const { status } = await plane.call('POST', '/api/networks/enroll', {
      body: { enrollment_token: 'x', name: 'x', public_key: publicKey() },
      headers: { 'current-peers': header },
    });
    expect(status).toBe(422);
  });
});

describe('addresses', () => {
  test('are given in order, reused last, and a full range is a 422 that says so and takes no use', async () => {
    const key = await makeKey(plane, token, network);
    const replies: Reply[] = [];
    for (let count = 0; count < 5; count += 1) replies.push(await enroll(plane, key));
    const ids = replies.map(({ body }) => body.data.peer.id);
    for (const index of [3, 1]) await plane.call('DELETE', `/api/networks/${network}/peers/${ids[index]}`, { token });
    for (let count = 0; count < 3; count += 1) replies.push(await enroll(plane, key));
    expect(addresses(replies)).toEqual([1, 2, 3, 4, 5, 6, 4, 2].map((last) => `10.77.0.${last}`));

    const full = await enroll(plane, key);
    expect(full.status).toBe(422);
    expect(full.body.errors).toEqual({ private_cidr: ['10.77.0.0/29 is full: all its 6 addresses are in use'] });
    expect(await uses()).toBe(8);
  });

  test('that are taken against all records are passed over', async () => {
    const key = await makeKey(plane, token, network);
    await enroll(plane, key);
    await withDatabase(plane.dataDir, (db) =>
      db.updateTable('networks').set({ addresses_given: 0 }).where('id', '=', network).execute(),
    );
    expect((await enroll(plane, key)).body.data.peer.address).toBe('10.77.0.2');
  });
});

describe('a repetition with the same Idempotency-Key', () => {
  test('gets the same peer, address and token, and takes no use', async () => {
    const key = await makeKey(plane, token, network, { max_uses: 2 });
    const fields = { public_key: publicKey() };
    const first = await enroll(plane, key, fields, 'attempt-1');
    const again = await enroll(plane, key, { ...fields, name: 'another name' }, 'attempt-1');
    expect(again.status).toBe(201);
    expect(again.body).toEqual(first.body);
    expect(await uses()).toBe(1);
    expect((await readAs(first.body.data.access_token)).status).toBe(200);
  });

  test('works with a key that is used up, and with one that has expired', async () => {
    const key = await makeKey(plane, token, network, { max_uses: 1, expires_in_hours: 1 });
    const fields = { public_key: publicKey() };
    const first = await enroll(plane, key, fields, 'attempt-1');
    plane.clock.advance(2 * hour);
    const again = await enroll(plane, key, fields, 'attempt-1');
    expect([again.status, again.body.data.peer]).toEqual([201, first.body.data.peer]);
    expect((await readAs(again.body.data.access_token)).status).toBe(200);
  });

  test('shows the network as it is now', async () => {
    const key = await makeKey(plane, token, network);
    const fields = { public_key: publicKey() };
    await enroll(plane, key, fields, 'attempt-1');
    await enroll(plane, key);
    const again = await enroll(plane, key, fields, 'attempt-1');
    expect([again.body.data.network.revision, again.body.data.network.peers.length]).toEqual([3, 2]);
  });

  test('of another enrolment key is no repetition', async () => {
    const [one, other] = [await makeKey(plane, token, network), await makeKey(plane, token, network)];
    const fields = { public_key: publicKey() };
    await enroll(plane, one, fields, 'attempt-1');
    const reply = await enroll(plane, other, fields, 'attempt-1');
    expect([reply.status, reply.body.data]).toEqual([422, undefined]);
  });

  test('does not bring a removed peer back for nothing', async () => {
    const key = await makeKey(plane, token, network, { max_uses: 1 });
    const fields = { public_key: publicKey() };
    const { body } = await enroll(plane, key, fields, 'attempt-1');
    await plane.call('DELETE', `/api/networks/${network}/peers/${body.data.peer.id}`, { token });
    expect((await enroll(plane, key, fields, 'attempt-1')).status).toBe(403);
  });

  test('gets nothing from a revoked key', async () => {
    const key = await makeKey(plane, token, network);
    const fields = { public_key: publicKey() };
    await enroll(plane, key, fields, 'attempt-1');
    const [{ id }] = (await plane.call('GET', keyPath(), { token })).body.data;
    await plane.call('DELETE', `${keyPath()}/${id}`, { token });
    const reply = await enroll(plane, key, fields, 'attempt-1');
    expect([reply.status, reply.body.data]).toEqual([403, undefined]);
  });
});

test.each([
  ['without one', undefined],
  ['with another one', 'attempt-2'],
])('a public key that is enrolled already, %s, is a 422 that takes no use', async (_how, idempotencyKey) => {
  const key = await makeKey(plane, token, network);
  const fields = { public_key: publicKey() };
  await enroll(plane, key, fields, 'attempt-1');
  const reply = await enroll(plane, key, fields, idempotencyKey);
  expect(reply.status).toBe(422);
  expect(reply.body).toEqual({
    message: expect.any(String),
    errors: { public_key: ['is enrolled in this network already'] },
  });
  expect(await uses()).toBe(1);
});

test('the same public key may be in two networks', async () => {
  const fields = { public_key: publicKey() };
  const elsewhere = await makeNetwork(plane, token);
  expect((await enroll(plane, await makeKey(plane, token, network), fields)).status).toBe(201);
  expect((await enroll(plane, await makeKey(plane, token, elsewhere), fields)).status).toBe(201);
});

describe('an enrolment is refused', () => {
  test('an unknown key gets a 401', async () => {
    expect((await enroll(plane, `cpn_${'x'.repeat(43)}`)).status).toBe(401);
  });

  test('with a key that has expired, is used up or was revoked: 403 that says which', async () => {
    const expired = await makeKey(plane, token, network, { expires_in_hours: 1 });
    const usedUp = await makeKey(plane, token, network, { max_uses: 1, expires_in_hours: 168 });
    const revoked = await makeKey(plane, token, network, { expires_in_hours: 168 });
    await enroll(plane, usedUp);
    const id = (await plane.call('GET', `${keyPath()}?all=true`, { token })).body.data[2].id;
    await plane.call('DELETE', `${keyPath()}/${id}`, { token });
    plane.clock.advance(hour);
    const replies = [await enroll(plane, expired), await enroll(plane, usedUp), await enroll(plane, revoked)];
    expect(replies.map(({ status, body }) => [status, body.message])).toEqual([
      [403, 'the enrolment key has expired'],
      [403, 'the enrolment key is used up'],
      [403, 'the enrolment key was revoked'],
    ]);
  });

  test.each([
    [{ enrollment_token: 'nonsense' }, ['enrollment_token']],
    [{ enrollment_token: `cpn_${'x'.repeat(125)}` }, ['enrollment_token']],
    [{ name: '' }, ['name']],
    [{ name: undefined, public_key: undefined }, ['name', 'public_key']],
    [{ peer_type: 'router' }, ['peer_type']],
    [{ public_key: 'AAAA' }, ['public_key']],
    [{ public_key: `${'A'.repeat(42)}B=` }, ['public_key']],
    [{ endpoint: '203.0.113.22' }, ['endpoint']],
    [{ endpoint: '' }, ['endpoint']],
    [{ endpoint: `${'x'.repeat(256)}:1` }, ['endpoint']],
    [{ endpoint: 'x.example:1\nPostUp = id', public_key: `${'A'.repeat(42)}B=` }, ['endpoint', 'public_key']],
  ])('%j: 422 that names its fields and takes no use', async (fields, names) => {
    const key = await makeKey(plane, token, network);
    const reply = await enroll(plane, key, fields);
    expect(reply.status).toBe(422);
    expect(Object.keys(reply.body.errors).sort()).toEqual(names);
    expect(await uses()).toBe(0);
  });

  test.each(['', 'x'.repeat(256)])('with an Idempotency-Key of the wrong length: 422', async (idempotencyKey) => {
    const reply = await enroll(plane, await makeKey(plane, token, network), {}, idempotencyKey);
    expect([reply.status, Object.keys(reply.body.errors)]).toEqual([422, ['idempotency-key']]);
  });
});

test('an endpoint on this machine is for a control plane that only this machine can call', async () => {
  const endpoint = '127.0.0.1:51820';
  const local = await enroll(plane, await makeKey(plane, token, network), { endpoint });
  expect([local.status, local.body.data.peer.endpoint]).toEqual([201, endpoint]);

  const open = await startPlane({ host: '0.0.0.0' });
  const admin = await open.signIn('admin');
  const url = `http://127.0.0.1:${new URL(open.url).port}`;
  const reachable = { ...open, url };
  const key = await makeKey(reachable, admin, await makeNetwork(reachable, admin));
  for (const refused of [endpoint, '[::1]:51820', '169.254.169.254:80', '0.0.0.0:1', '224.0.0.1:1']) {
    const reply = await enroll(reachable, key, { endpoint: refused });
    expect([reply.status, Object.keys(reply.body.errors)]).toEqual([422, ['endpoint']]);
  }
  expect((await enroll(reachable, key, { endpoint: '203.0.113.22:51820' })).status).toBe(201);
});
