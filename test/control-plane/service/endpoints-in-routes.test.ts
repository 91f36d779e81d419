import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { closePlane, enroll, makeKey, makeNetwork, openPlane, type Plane } from '../harness.ts';

let plane: Plane;
let token: string;
let network: number;
let key: string;

beforeAll(async () => {
  plane = await openPlane({ allowPublicRoutes: true });
  token = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));
beforeEach(async () => {
  network = await makeNetwork(plane, token, { routes: ['192.168.50.0/24', '198.51.100.0/24', '0.0.0.0/0'] });
  key = await makeKey(plane, token, network);
});

const inside = [
  ['192.168.50.7:51820', 'the route 192.168.50.0/24'],
  ['198.51.100.7:51820', 'the route 198.51.100.0/24'],
  ['10.77.0.9:51820', "the network's own range 10.77.0.0/24"],
] as const;
const outside = ['192.168.51.7:51820', '203.0.113.7:51820', 'edge.example.net:51820', '[2001:db8::1]:51820'];

describe('an endpoint in what the network carries', () => {
  test.each(inside)(
    '%s is a 422 that names %s, at the enrolment, which takes no use, and later',
    async (endpoint, what) => {
      const rule = `"${endpoint}" lies in ${what}, which leads into the tunnel; give an address outside the network, or none`;
      const enrolled = await enroll(plane, key, { endpoint });
      expect([enrolled.status, enrolled.body.errors]).toEqual([422, { endpoint: [rule] }]);
      const { peer, access_token } = (await enroll(plane, key)).body.data;
      const path = `/api/networks/${network}/peers/${peer.id}`;
      for (const as of [access_token, token]) {
        const changed = await plane.call('PATCH', path, { token: as, body: { endpoint } });
        expect([changed.status, changed.body.errors]).toEqual([422, { endpoint: [rule] }]);
      }
      const keys = await plane.call('GET', `/api/networks/${network}/enrollment-keys?all=true`, { token });
      expect(keys.body.data[0].uses).toBe(1);
    },
  );

  test.each(outside)('%s is none, though the default route covers it', async (endpoint) => {
    expect((await enroll(plane, key, { endpoint })).body.data.peer.endpoint).toBe(endpoint);
  });
});

describe('a new route that covers an endpoint', () => {
  const advertise = (routes: string[]) => plane.call('PATCH', `/api/networks/${network}`, { token, body: { routes } });

  test('is a 422 that names the peer, and can be taken once the endpoint is another', async () => {
    const { peer } = (await enroll(plane, key, { endpoint: '192.168.51.7:51820', name: 'gw' })).body.data;
    const refused = await advertise(['192.168.50.0/24', '192.168.0.0/16']);
    expect([refused.status, refused.body.errors]).toEqual([
      422,
      {
        routes: [
          `the route 192.168.0.0/16 covers the endpoint 192.168.51.7:51820 of peer ${peer.id} (gw); change that first`,
        ],
      },
    ]);
    expect((await advertise(['192.168.60.0/24'])).status).toBe(200);
    await plane.call('PATCH', `/api/networks/${network}/peers/${peer.id}`, { token, body: { endpoint: null } });
    expect((await advertise(['192.168.0.0/16'])).status).toBe(200);
  });

  test('that was there before is no hindrance to others', async () => {
    await advertise([]);
    await enroll(plane, key, { endpoint: '203.0.113.7:51820' });
    expect((await advertise(['0.0.0.0/0'])).status).toBe(200);
    expect((await advertise(['0.0.0.0/0', '192.168.60.0/24'])).status).toBe(200);
  });
});
