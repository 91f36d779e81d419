import { afterAll, beforeAll, expect, test } from 'vitest';
import { closePlane, enroll, makeKey, makeNetwork, openPlane, type Plane } from '../harness.ts';

let plane: Plane;
let token: string;
beforeAll(async () => {
  plane = await openPlane();
  token = await plane.signIn('member');
});
afterAll(() => closePlane(plane));

const change = (id: number, body: unknown) => plane.call('PATCH', `/api/networks/${id}`, { token, body });
const [lan, lab, shop] = ['192.168.1.0/24', '192.168.2.0/24', '192.168.3.0/24'] as const;
const makeOffice = (routes: readonly string[]) => makeNetwork(plane, token, { routes });

test('routes are added and removed in one request, and the others stay', async () => {
  const id = await makeOffice([lan, lab]);
  const reply = await change(id, { add_routes: [shop, lab], remove_routes: [lan] });
  expect([reply.status, reply.body.data.routes, reply.body.data.revision]).toEqual([200, [lab, shop], 2]);
  const again = await change(id, { add_routes: [shop] });
  expect([again.status, again.body.data.revision]).toEqual([200, 2]);
});

test('what two admins add at the same time is all there', async () => {
  const id = await makeOffice([]);
  const routes = Array.from({ length: 12 }, (_, index) => `192.168.${index}.0/24`);
  const replies = await Promise.all(routes.map((route) => change(id, { add_routes: [route] })));
  expect(replies.map(({ status }) => status)).toEqual(routes.map(() => 200));
  const { body } = await plane.call('GET', `/api/networks/${id}`, { token });
  expect(body.data.routes.toSorted()).toEqual(routes.toSorted());
});

test.each<[string, object, Record<string, string>]>([
  [
    'all routes and single ones',
    { routes: [], add_routes: [shop], remove_routes: [lan] },
    { add_routes: 'excludes routes', remove_routes: 'excludes routes' },
  ],
  ['a removal of a route that is not there', { remove_routes: [shop] }, { remove_routes: `"${shop}" is not a route` }],
  ['one in both lists', { add_routes: [lan], remove_routes: [lan] }, { remove_routes: 'is in add_routes too' }],
  ['a route in the range', { add_routes: ['10.77.0.0/25'] }, { add_routes: 'overlaps' }],
  ['a public route', { add_routes: ['8.8.8.0/24'] }, { add_routes: 'is not an IPv4 range inside' }],
  ['host bits', { add_routes: ['192.168.3.1/24'] }, { add_routes: 'has host bits set' }],
  ['a route twice', { add_routes: [shop, shop] }, { add_routes: 'is listed twice' }],
  [
    'the 51st route',
    { add_routes: Array.from({ length: 49 }, (_, index) => `172.16.${index}.0/24`) },
    { add_routes: 'would make 51 routes; a network has at most 50' },
  ],
  [
    'an expectation that is none',
    { routes: [], expected_routes: ['x'] },
    { expected_routes: 'is not an address range' },
  ],
])('%s is a 422 that says so, and changes nothing', async (_, body, rules) => {
  const id = await makeOffice([lan, lab]);
  const reply = await change(id, body);
  const matching = Object.entries(rules).map(([field, rule]) => [field, [expect.stringContaining(rule)]]);
  expect([reply.status, reply.body.errors]).toEqual([422, Object.fromEntries(matching)]);
  expect((await plane.call('GET', `/api/networks/${id}`, { token })).body.data).toMatchObject({
    routes: [lan, lab],
    revision: 1,
  });
});

test('a route over the endpoint of a peer is refused where it is added too', async () => {
  const id = await makeOffice([]);
  await enroll(plane, await makeKey(plane, token, id), { endpoint: '10.9.0.7:51820' });
  const { status, body } = await change(id, { add_routes: ['10.9.0.0/24'] });
  expect([status, body.errors]).toEqual([422, { add_routes: [expect.stringContaining('covers the endpoint')] }]);
});

test('a replacement of other routes than there are is a 409 that says what is different', async () => {
  const id = await makeOffice([lan, lab]);
  await change(id, { add_routes: [shop], remove_routes: [lan] });
  const stale = await change(id, { routes: [lab], expected_routes: [lab, lan] });
  expect([stale.status, stale.body.message]).toEqual([
    409,
    `the routes of the network have changed: route ${shop} was added, route ${lan} was removed`,
  ]);
  const fresh = await change(id, { routes: [lan], expected_routes: [shop, lab] });
  expect([fresh.status, fresh.body.data.routes]).toEqual([200, [lan]]);
  // A request whose first reply was lost comes again.
  expect((await change(id, { routes: [lan], expected_routes: [shop, lab] })).status).toBe(200);
});

test('routes of a connector are replaced where they are what the caller saw, whatever it withdrew', async () => {
  const id = await makeOffice([lan, lab, shop]);
  const { body } = await enroll(plane, await makeKey(plane, token, id), { peer_type: 'connector' });
  const { id: peer } = body.data.peer;
  const changePeer = (fields: object, by = token) =>
    plane.call('PATCH', `/api/networks/${id}/peers/${peer}`, { token: by, body: fields });
  const first = await changePeer({ routes: [lan, lab], expected_routes: null });
  expect([first.status, first.body.data.routes]).toEqual([200, [lan, lab]]);
  const stale = await changePeer({ routes: [shop], expected_routes: null });
  expect([stale.status, stale.body.message]).toEqual([
    409,
    `the routes of the peer have changed: route ${shop} was removed`,
  ]);
  expect((await changePeer({ name: 'edge-9', expected_routes: [lan] })).status).toBe(409);
  expect((await changePeer({ routes: [shop], expected_routes: ['x'] })).body.errors).toEqual({
    expected_routes: [expect.stringContaining('is not an address range')],
  });
  // A route that the connector took out of service, or puts back, is its route all the time.
  expect((await changePeer({ withdrawn: [lab] }, body.data.access_token)).body.data.routes).toEqual([lan]);
  const fresh = await changePeer({ routes: [lab], expected_routes: [lab, lan] });
  expect([fresh.status, fresh.body.data.withdrawn]).toEqual([200, [lab]]);
  // A request whose first reply was lost comes again.
  expect((await changePeer({ routes: [lab], expected_routes: [lab, lan] })).status).toBe(200);
  const { revision } = (await plane.call('GET', `/api/networks/${id}`, { token })).body.data;
  expect((await changePeer({ routes: null, expected_routes: [lan] })).status).toBe(409);
  expect((await plane.call('GET', `/api/networks/${id}`, { token })).body.data.revision).toBe(revision);
});
