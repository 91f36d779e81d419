import { afterAll, beforeAll, expect, test } from 'vitest';
import { findConnectors } from '../../../src/console/logic/peers/connectors.ts';
import type { Network } from '../../../src/contract/network.ts';
import type { Peer } from '../../../src/contract/peer.ts';
import { findLosses } from '../../../src/core/export/find-losses.ts';
import { closePlane, enroll, makeKey, makeNetwork, openPlane, type Plane } from '../harness.ts';

let plane: Plane;
let token: string;
beforeAll(async () => {
  plane = await openPlane();
});
afterAll(() => closePlane(plane));

const [lan, other] = ['192.168.50.0/24', '192.168.60.0/24'];

/** What is done to the second connector: by whom, and whether it serves the LAN afterwards. */
const states: readonly (readonly [what: string, changes: readonly (object | 'remove')[], serves: boolean])[] = [
  ['serves all routes', [], true],
  ['is limited to the LAN', [{ routes: [lan] }], true],
  ['is limited to another route', [{ routes: [other] }], false],
  ['is limited to none', [{ routes: [] }], false],
  ['was limited before', [{ routes: [] }, { routes: null }], true],
  ['has withdrawn the LAN', [{ withdrawn: [lan] }], false],
  ['has withdrawn the LAN, to which it is limited', [{ routes: [lan] }, { withdrawn: [lan] }], false],
  ['has withdrawn another route', [{ withdrawn: [other] }], true],
  ['is suspended', [{ suspended: true }], false],
  ['is suspended and limited to the LAN', [{ routes: [lan] }, { suspended: true }], false],
  ['was suspended before', [{ suspended: true }, { suspended: false }], true],
  ['is removed', ['remove'], false],
];
const rows = states.flatMap(([what, changes, serves]) =>
  [null, '203.0.113.9:51820'].map((endpoint) => ({ what, changes, serves, endpoint })),
);

test.each(rows)('a connector that $what, at $endpoint: hosts, users and their warnings agree', async (row) => {
  token = await plane.signIn('owner');
  const id = await makeNetwork(plane, token, { routes: [lan, other] });
  const key = await makeKey(plane, token, id);
  const add = async (name: string, fields: object) => (await enroll(plane, key, { name, ...fields })).body.data;
  const first = await add('first', { peer_type: 'connector' });
  const fields = { peer_type: 'connector', ...(row.endpoint !== null && { endpoint: row.endpoint }) };
  const second = await add('second', fields);
  const host = await add('host', {});
  const path = `/api/networks/${id}/peers/${second.peer.id}`;
  for (const change of row.changes) {
    const reply = await (change === 'remove'
      ? plane.call('DELETE', path, { token })
      : plane.call('PATCH', path, { token, body: change }));
    expect(reply.status).toBe(200);
  }
  const read = async (of: string, as: string) =>
    (await plane.call('GET', `/api/networks/${id}${of}`, { token: as })).body.data;
  const views: Record<string, readonly Peer[]> = {
    'the map of a host': ((await read('', host.access_token)) as Network).peers,
    'the network of a user': ((await read('', token)) as Network).peers,
    'the list of peers, suspended ones too': await read('/peers', token),
  };
  const ids = [first.peer.id, ...(row.serves ? [second.peer.id] : [])];
  for (const [view, peers] of Object.entries(views)) {
    expect([view, findConnectors(peers, lan).map((each) => each.id)]).toEqual([view, ids]);
    const { routes } = findLosses({ routes: [lan], peers }, [first.peer]);
    expect([view, routes]).toEqual([view, row.serves ? [] : [lan]]);
  }
});
