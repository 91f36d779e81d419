import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { closePlane, enroll, makeKey, makeNetwork, openPlane, type Plane } from '../harness.ts';

const [one, two] = ['192.168.1.0/24', '192.168.2.0/24'];
let plane: Plane;
let token: string;
let network: number;

beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('member');
});
afterAll(() => closePlane(plane));
beforeEach(async () => {
  network = await makeNetwork(plane, token, { routes: [one, two] });
});

const path = () => `/api/networks/${network}/enrollment-keys`;
const keys = async () => (await plane.call('GET', path(), { token })).body.data;
const create = (fields: object) => plane.call('POST', path(), { token, body: { name: 'k', ...fields } });

describe('an enrolment key for certain types of peers', () => {
  test('lets no others in: a 403 that says what it is for, and takes no use', async () => {
    const key = await makeKey(plane, token, network, { peer_types: ['origin', 'admin_device'] });
    const refused = await enroll(plane, key, { peer_type: 'connector' });
    expect([refused.status, refused.body.message]).toEqual([
      403,
      'the enrolment key is for peers of type origin or admin_device, and this one is of type connector; enrol as a type of the key, or with another key',
    ]);
    expect((await keys())[0]).toMatchObject({ uses: 0, peer_types: ['origin', 'admin_device'] });
    for (const peer_type of ['origin', 'admin_device']) {
      expect((await enroll(plane, key, { peer_type })).status).toBe(201);
    }
  });

  test('that are connectors refuses a host that says nothing of its type, which is an origin', async () => {
    const key = await makeKey(plane, token, network, { peer_types: ['connector'] });
    expect((await enroll(plane, key, { peer_type: undefined })).status).toBe(403);
  });

  test('still answers the repetition of an enrolment', async () => {
    const key = await makeKey(plane, token, network, { peer_types: ['connector'] });
    const fields = { peer_type: 'connector', public_key: Buffer.alloc(32, 7).toString('base64') };
    const first = await enroll(plane, key, fields, 'again');
    expect([first.status, (await enroll(plane, key, fields, 'again')).body.data.peer]).toEqual([
      201,
      first.body.data.peer,
    ]);
  });

  test('is for any type where it names none', async () => {
    const key = await makeKey(plane, token, network);
    expect((await enroll(plane, key, { peer_type: 'connector' })).status).toBe(201);
    expect((await keys())[0]).not.toHaveProperty('peer_types');
  });
});

describe('an enrolment key for certain routes', () => {
  test('limits its connectors to them, which those cannot change', async () => {
    const key = await makeKey(plane, token, network, { peer_types: ['connector'], routes: [one] });
    const { peer, access_token } = (await enroll(plane, key, { peer_type: 'connector' })).body.data;
    expect(peer.routes).toEqual([one]);
    const self = `/api/networks/${network}/peers/${peer.id}`;
    for (const [body, status] of [
      [{ routes: [one, two] }, 403],
      [{ routes: null }, 403],
      [{ withdrawn: [one] }, 200],
      [{ withdrawn: [] }, 200],
    ] as const) {
      const reply = await plane.call('PATCH', self, { token: access_token, body });
      expect([body, reply.status]).toEqual([body, status]);
    }
    const read = await plane.call('GET', `/api/networks/${network}`, { token });
    expect(read.body.data.peers[0].routes).toEqual([one]);
    // What an admin decides later holds.
    expect((await plane.call('PATCH', self, { token, body: { routes: null } })).body.data.routes).toBeUndefined();
  });

  test('leaves other peers as they are', async () => {
    const key = await makeKey(plane, token, network, { routes: [] });
    expect((await enroll(plane, key)).body.data.peer).not.toHaveProperty('routes');
    expect((await enroll(plane, key, { peer_type: 'connector' })).body.data.peer.routes).toEqual([]);
  });

  test.each([
    [{ peer_types: [] }, 'peer_types'],
    [{ peer_types: ['router'] }, 'peer_types'],
    [{ peer_types: ['origin'], routes: [one] }, 'routes'],
    [{ routes: ['192.168.3.0/24'] }, 'routes'],
    [{ routes: ['192.168.1.1/24'] }, 'routes'],
  ])('%j is a 422 that names %s', async (fields, name) => {
    const reply = await create(fields);
    expect([reply.status, Object.keys(reply.body.errors)]).toEqual([422, [name]]);
    expect(await keys()).toEqual([]);
  });
});

test('what a key is limited to stands in the audit', async () => {
  await create({ peer_types: ['connector'], routes: [two] });
  const [entry] = (await plane.call('GET', '/api/audit', { token: await plane.signIn('owner') })).body.data;
  expect(entry.details).toMatchObject({ peer_types: ['connector'], routes: [two] });
});
