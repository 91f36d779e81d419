import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../../../lab/eventually.ts';
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
import { startOffice } from '../../health/office.ts';

const [lan, other] = ['192.168.1.0/24', '192.168.2.0/24'];
const endpoint = '203.0.113.1:51820';
let plane: Plane;
let token: string;
let network: number;
let key: string;
let edge: { id: number; public_key: string };

beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('member');
});
afterAll(() => closePlane(plane));
beforeEach(async () => {
  network = await makeNetwork(plane, token, { routes: [lan, other] });
  key = await makeKey(plane, token, network);
  edge = (await enroll(plane, key, { name: 'edge', peer_type: 'connector', endpoint })).body.data.peer;
});

const path = () => `/api/networks/${network}`;
const addPhone = (fields: object = {}, idempotencyKey?: string) =>
  enroll(
    plane,
    key,
    { name: 'phone', peer_type: 'admin_device', profile: { connector: edge.id, routes: [lan] }, ...fields },
    idempotencyKey,
  );
const change = (peer: number, body: object) => plane.call('PATCH', `${path()}/peers/${peer}`, { token, body });
const usesOf = async () => (await plane.call('GET', `${path()}/enrollment-keys`, { token })).body.data[0].uses;

describe('a peer with a profile', () => {
  test('is via connectors in each reply and map, with the connector as the file names it', async () => {
    const { status, body } = await addPhone();
    const expected = {
      via: 'connectors',
      profile: { connector: edge.id, public_key: edge.public_key, endpoint, routes: [lan], declined: [other] },
    };
    expect([status, body.data.peer]).toMatchObject([201, expected]);
    const map = await plane.call('GET', path(), { token: body.data.access_token });
    expect(map.body.data.peers.at(-1)).toEqual(body.data.peer);
    expect(map.body.data.peers[0]).not.toHaveProperty('via');
    const [entry] = (await plane.call('GET', '/api/audit', { token: await plane.signIn('owner') })).body.data;
    expect(entry).toMatchObject({ action: 'peer.enroll', details: { connector: edge.id } });
  });

  test('has each of its routes once, and the others of the network are declined', async () => {
    for (const [routes, declined] of [
      [[lan, lan], [other]],
      [[other, lan], []],
      [[], [lan, other]],
    ]) {
      const { peer } = (await addPhone({ profile: { connector: edge.id, routes } })).body.data;
      expect(peer.profile).toMatchObject({ routes: [...new Set(routes)], declined });
    }
  });

  test('keeps the profile whatever becomes of its connector, and a repeated enrolment gets the same', async () => {
    const fields = { public_key: publicKey() };
    const first = (await addPhone(fields, 'once')).body.data.peer;
    await change(edge.id, { endpoint: '203.0.113.9:51820', public_key: publicKey() });
    expect((await addPhone(fields, 'once')).body.data.peer).toEqual(first);
    await plane.call('DELETE', `${path()}/peers/${edge.id}`, { token });
    const { body } = await plane.call('GET', path(), { token });
    expect(body.data.peers).toEqual([first]);
  });

  test('has no endpoint, neither when it enrols nor later', async () => {
    const { id } = (await addPhone()).body.data.peer;
    const later = await change(id, { endpoint });
    expect([later.status, later.body.errors]).toEqual([
      422,
      { endpoint: [`"${endpoint}" is not for a peer that is reached through a connector alone`] },
    ]);
  });
});

describe('a profile that the network cannot serve is a 422 that takes no use of the key', () => {
  const refused = async (fields: object, rule: string) => {
    const before = await usesOf();
    const { status, body } = await addPhone(fields);
    expect([status, body.errors, await usesOf()]).toEqual([422, { profile: [rule] }, before]);
  };

  test('for a connector, or with an endpoint', async () => {
    await refused({ peer_type: 'connector' }, 'is not for a connector');
    await refused({ endpoint: '203.0.113.7:51820' }, 'is not for a peer with an endpoint');
  });

  test('without a connector that can be dialled and relays', async () => {
    const asked = { profile: { connector: edge.id, routes: [] } };
    const origin = (await enroll(plane, key, { name: 'web', endpoint: '203.0.113.8:51820' })).body.data.peer;
    for (const id of [origin.id, 999_999]) {
      const rule = `names peer ${id}, which is not a connector of the network`;
      await refused({ profile: { connector: id, routes: [] } }, rule);
    }
    await change(edge.id, { withdrawn: ['10.77.0.0/24'] });
    await refused(asked, `names connector ${edge.id}, which does not relay; name another, or put it back in service`);
    await change(edge.id, { withdrawn: [], endpoint: null });
    await refused(
      asked,
      `names connector ${edge.id}, which has no endpoint; give the connector an endpoint, or name another`,
    );
    await change(edge.id, { suspended: true, endpoint });
    const unlisted = `names connector ${edge.id}, which is suspended or has expired`;
    await refused(asked, unlisted);
    await change(edge.id, { suspended: false });
    expect((await addPhone(asked)).status).toBe(201);
    const expired = { expired: 1, expires_at: plane.clock.now().toISOString() };
    await withDatabase(plane.dataDir, (db) => db.updateTable('peers').set(expired).where('id', '=', edge.id).execute());
    await refused(asked, unlisted);
  });

  test('with a connector of another network, or a route that the network has not', async () => {
    const elsewhere = await makeNetwork(plane, token, { private_cidr: '10.78.0.0/24' });
    const foreign = await enroll(plane, await makeKey(plane, token, elsewhere), { peer_type: 'connector', endpoint });
    const { id } = foreign.body.data.peer;
    await refused(
      { profile: { connector: id, routes: [] } },
      `names peer ${id}, which is not a connector of the network`,
    );
    await refused(
      { profile: { connector: edge.id, routes: ['192.168.3.0/24'] } },
      'has 192.168.3.0/24, which is not a route of the network',
    );
  });
});

test('the event that a connector is offline names the peers that have no other', async () => {
  const office = await startOffice();
  const { plane: at, network: id, token: owner, two, one } = office;
  await at.call('PATCH', `/api/networks/${id}/peers/${two.id}`, { token: owner, body: { endpoint } });
  const profile = { connector: two.id, routes: [] };
  const phone = await enroll(at, await makeKey(at, owner, id), { name: 'phone', peer_type: 'admin_device', profile });
  await Promise.all([one, two].map((peer) => office.call(peer)));
  await office.untilState(two, 'online');
  at.clock.advance(60_000);
  await office.call(one);
  at.clock.advance(40_000);
  await office.untilState(two, 'offline');
  const event = await eventually('the event', async () => {
    const { body } = await at.call('GET', `/api/networks/${id}/events?after=0&limit=1000`, { token: owner });
    return body.data.find((each: { type: string }) => each.type === 'peer.offline');
  });
  expect(event).toMatchObject({
    peer: { name: 'two' },
    details: { only_connector_of: [{ id: phone.body.data.peer.id, name: 'phone' }] },
  });
});
