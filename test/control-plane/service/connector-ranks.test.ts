import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { closePlane, enroll, hour, makeKey, makeNetwork, openPlane, type Plane } from '../harness.ts';

const [one, two, range] = ['192.168.1.0/24', '192.168.2.0/24', '10.77.0.0/24'];
let plane: Plane;
let token: string;
let network: number;
let self: { id: number; token: string };

beforeAll(async () => {
  plane = await openPlane();
});
afterAll(() => closePlane(plane));
beforeEach(async () => {
  token = await plane.signIn('member');
  network = await makeNetwork(plane, token, { routes: [one, two] });
  const { data } = (await enroll(plane, await makeKey(plane, token, network), { peer_type: 'connector' })).body;
  self = { id: data.peer.id, token: data.access_token };
  plane.clock.advance(hour);
});

const change = (body: object, as = token) =>
  plane.call('PATCH', `/api/networks/${network}/peers/${self.id}`, { token: as, body });
const since = async (body: object) => (await change(body, self.token)).body.data.serving_since;

test('a connector serves since it enrolled, and another peer since never', async () => {
  const now = plane.clock.now().toISOString();
  const key = await makeKey(plane, token, network);
  expect((await enroll(plane, key, { peer_type: 'connector' })).body.data.peer.serving_since).toBe(now);
  expect((await enroll(plane, key)).body.data.peer).not.toHaveProperty('serving_since');
});

test('a connector that had all its routes out of service and puts one back is a newcomer', async () => {
  const began = await since({ withdrawn: [] });
  expect(await since({ withdrawn: [one, two] })).toBe(began);
  const now = plane.clock.now().toISOString();
  expect(await since({ withdrawn: [one] })).toBe(now);
  plane.clock.advance(hour);
  expect(await since({ withdrawn: [] })).toBe(now);
});

test('a drained connector has its place back when the drain ends, with a dead LAN too', async () => {
  const began = await since({ withdrawn: [] });
  for (const after of [[], [one]]) {
    expect(await since({ withdrawn: [one, two, range] })).toBe(began);
    plane.clock.advance(hour);
    expect(await since({ withdrawn: after })).toBe(began);
  }
});

test('a connector that has a route in service all the time is no newcomer, whatever else it does', async () => {
  const began = await since({ withdrawn: [] });
  for (const body of [{ withdrawn: [one, range] }, { withdrawn: [] }, { name: 'gw' }, { endpoint: '203.0.113.9:1' }]) {
    expect([body, await since(body)]).toEqual([body, began]);
  }
});

test('the priority is for owners, admins and members to set, and for connectors alone', async () => {
  expect((await change({ priority: 1 }, self.token)).status).toBe(403);
  expect((await change({ priority: 7 })).body.data.priority).toBe(7);
  expect((await change({ priority: 0 })).body.data).not.toHaveProperty('priority');
  for (const priority of [-1, 1001, 1.5, '1']) expect((await change({ priority })).status).toBe(422);
  const origin = (await enroll(plane, await makeKey(plane, token, network))).body.data.peer;
  const path = `/api/networks/${network}/peers/${origin.id}`;
  const reply = await plane.call('PATCH', path, { token, body: { priority: 1 } });
  expect([reply.status, Object.keys(reply.body.errors)]).toEqual([422, ['priority']]);
});

test('a connector states by itself that it masquerades, and no other peer does', async () => {
  expect((await change({}, self.token)).body.data).not.toHaveProperty('masquerades');
  expect((await change({ masquerades: true }, self.token)).body.data.masquerades).toBe(true);
  expect((await change({ masquerades: false }, self.token)).body.data).not.toHaveProperty('masquerades');
  const { data } = (await enroll(plane, await makeKey(plane, token, network))).body;
  const path = `/api/networks/${network}/peers/${data.peer.id}`;
  const reply = await plane.call('PATCH', path, { token: data.access_token, body: { masquerades: true } });
  expect([reply.status, Object.keys(reply.body.errors)]).toEqual([422, ['masquerades']]);
});
