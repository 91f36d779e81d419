import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { makeIdentity, proveEnrollment, proveKey } from '../../../src/core/crypto/identity.ts';
import { parsePublicKey } from '../../../src/core/crypto/keys.ts';
import { eventually } from '../../lab/eventually.ts';
import {
  closePlane,
  enroll,
  makeKey,
  makeNetwork,
  openPlane,
  type Plane,
  publicKey,
  quiet,
  withDatabase,
} from '../harness.ts';

const [lan, range] = ['192.168.1.0/24', '10.77.0.0/24'];
const identity = makeIdentity(new Uint8Array(32).fill(7));
let plane: Plane;
let token: string;
let network: number;

beforeAll(async () => {
  // No state of a host changes meanwhile.
  plane = await openPlane({ healthTimes: quiet });
  token = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));
beforeEach(async () => {
  network = await makeNetwork(plane, token, { routes: [lan] });
});

let port = 0;
async function add(name: string, fields: object = {}, keyFields: object = {}) {
  const endpoint = `203.0.113.9:${++port}`;
  const key = await makeKey(plane, token, network, keyFields);
  const { data } = (await enroll(plane, key, { name, peer_type: 'connector', endpoint, ...fields })).body;
  return { id: data.peer.id as number, token: data.access_token as string, endpoint, reply: data };
}

const path = () => `/api/networks/${network}`;
const read = async () => (await plane.call('GET', path(), { token })).body.data;
const relay = async () => (await read()).relay ?? null;
const change = (id: number, body: object, as = token) =>
  plane.call('PATCH', `${path()}/peers/${id}`, { token: as, body });
const remove = (id: number) => plane.call('DELETE', `${path()}/peers/${id}`, { token });
const changes = async () => {
  const { body } = await plane.call('GET', `${path()}/events?after=0`, { token });
  return body.data.filter(({ type }: { type: string }) => type === 'relay.changed');
};
const announce = (id: number, announced: 'online' | 'offline', lost_at: string | null = null) =>
  withDatabase(plane.dataDir, (db) =>
    db
      .insertInto('peer_health')
      .values({ peer_id: id, network_id: network, announced, lost_at })
      .onConflict((conflict) => conflict.column('peer_id').doUpdateSet({ announced, lost_at }))
      .execute(),
  );

test('of a closed network is a connector that enforces its rules, also one of a lower rank', async () => {
  const older = await add('older');
  const newer = await add('newer', { enforces_rules: true });
  for (const { id } of [older, newer]) await announce(id, 'online');
  expect(await relay()).toBe(older.id);
  const set = (mode: string) => plane.call('PUT', `${path()}/rules`, { token, body: { mode } });
  await set('closed');
  expect(await relay()).toBe(newer.id);
  expect((await changes()).at(-1)).toMatchObject({ details: { why: 'older does not enforce rules' } });
  await set('open');
  expect(await relay()).toBe(newer.id);
});

/** Enrols with the proof of one identity. */
async function enrol(name: string, type: string, fields: object = {}) {
  const key = await makeKey(plane, token, network);
  const public_key = parsePublicKey(publicKey());
  const tokenHash = createHash('sha256').update(key).digest('hex');
  const { serial, signature } = proveKey(identity, public_key, plane.clock.now());
  plane.clock.advance(1000);
  return plane.call('POST', '/api/networks/enroll', {
    body: { enrollment_token: key, name, public_key, peer_type: type, endpoint: '203.0.113.77:51820', ...fields },
    headers: {
      'peer-identity-key': identity.key,
      'peer-identity-proof': proveEnrollment(identity, { publicKey: public_key, tokenHash }),
      'peer-key-proof': `${serial} ${signature}`,
    },
  });
}

test('the first connector with an endpoint is the relay, in the reply to its enrolment and its revision', async () => {
  await add('web-1', { peer_type: 'origin' });
  await add('behind-nat', { endpoint: undefined });
  expect(await read()).not.toHaveProperty('relay');
  const first = await add('edge-1');
  expect(first.reply.network).toMatchObject({ relay: first.id, revision: 4 });
  const second = await add('edge-2');
  await change(second.id, { priority: 9 });
  expect(await relay()).toBe(first.id);
  expect(await changes()).toEqual([
    expect.objectContaining({
      peer: { id: first.id, name: 'edge-1' },
      details: { from: null, to: { id: first.id, name: 'edge-1' }, why: 'the network had none' },
    }),
  ]);
});

test('the relay is in a whole map, in the changes since a revision, and not in the list of networks', async () => {
  const first = await add('edge-1');
  await add('edge-2');
  const before = await plane.call('GET', path(), { token: first.token });
  const { etag } = before.body.data;
  await change(first.id, { withdrawn: [lan, range] }, first.token);
  const headers = { 'if-none-match': etag, 'a-im': 'cpn-delta' };
  const delta = await plane.call('GET', path(), { token: first.token, headers });
  const second = delta.body.data.relay;
  expect([delta.status, delta.body.data.peers.map(({ id }: { id: number }) => id)]).toEqual([226, [first.id]]);
  expect([before.body.data.relay, second, await relay()]).toEqual([first.id, second, second]);
  expect(second).not.toBe(first.id);
  const { data } = (await plane.call('GET', '/api/networks', { token })).body;
  expect(data.find(({ id }: { id: number }) => id === network)).not.toHaveProperty('relay');
});

describe('another connector becomes the relay with the change of the current one', () => {
  type Connector = Awaited<ReturnType<typeof add>>;

  test.each([
    [
      'drained by itself',
      'is out of service',
      (first: Connector) => change(first.id, { withdrawn: [range] }, first.token),
    ],
    ['suspended', 'is suspended', (first: Connector) => change(first.id, { suspended: true })],
    ['removed', 'left the network', (first: Connector) => remove(first.id)],
    ['without its endpoint', 'has no endpoint', (first: Connector) => change(first.id, { endpoint: null })],
  ] as const)('that is %s', async (_what, why, act) => {
    const first = await add('edge-1');
    const second = await add('edge-2');
    const { revision } = await read();
    expect((await act(first)).status).toBe(200);
    expect(await read()).toMatchObject({ relay: second.id, revision: revision + 1 });
    const [, event] = await changes();
    expect([event.peer, event.details]).toEqual([
      { id: second.id, name: 'edge-2' },
      { from: { id: first.id, name: 'edge-1' }, to: { id: second.id, name: 'edge-2' }, why: `edge-1 ${why}` },
    ]);
  });

  test('that expires', async () => {
    const first = await add('edge-1', {}, { peer_expires_in_hours: 1 });
    const second = await add('edge-2');
    const { revision } = await read();
    plane.clock.advance(2 * 3_600_000);
    token = await plane.signIn('owner');
    await change(second.id, { expires_at: new Date(plane.clock.now().getTime() + 9 * 3_600_000).toISOString() });
    await eventually('the relay changed', async () => (await relay()) === second.id);
    // The change that reschedules the expiry is a revision too.
    expect(await read()).toMatchObject({ revision: revision + 2 });
    expect((await changes())[1].details).toMatchObject({ from: { id: first.id }, why: 'edge-1 has expired' });
  });

  test('that enrols again as another type', async () => {
    const first = (await enrol('edge-1', 'connector')).body.data.peer;
    const second = await add('edge-2');
    expect(await relay()).toBe(first.id);
    const { body } = await enrol('edge-1', 'origin');
    expect([body.data.peer.id, body.data.network.relay]).toEqual([first.id, second.id]);
    expect((await changes())[1].details.why).toBe('edge-1 is not a connector');
  });
});

test('without another connector the network has no relay, until one returns', async () => {
  const { id } = await add('edge-1');
  await change(id, { withdrawn: [range] });
  expect(await read()).not.toHaveProperty('relay');
  await change(id, { withdrawn: [] });
  expect(await relay()).toBe(id);
  const whys = (await changes()).map(({ details }: { details: { why: string } }) => details.why);
  expect(whys).toEqual(['the network had none', 'edge-1 is out of service', 'the network had none']);
});

test('a change of the relay that leaves it able to relay changes nothing', async () => {
  const { id } = await add('edge-1');
  await add('edge-2');
  for (const body of [{ name: 'gw' }, { endpoint: '203.0.113.10:51820' }, { withdrawn: [lan] }, { routes: [] }])
    await change(id, body);
  expect([await relay(), (await changes()).length]).toEqual([id, 1]);
});

test('the next relay is rather one that is online', async () => {
  const [first, second, third] = [await add('edge-1'), await add('edge-2'), await add('edge-3')];
  await announce(second.id, 'offline');
  await announce(third.id, 'online');
  await remove(first.id);
  expect(await relay()).toBe(third.id);
});

test('a relay that never started its daemon gives way to a connector that is online', async () => {
  const [first, second] = [await add('edge-1'), await add('edge-2')];
  await announce(second.id, 'online');
  await change(second.id, { name: 'gw-2' });
  expect(await relay()).toBe(first.id);
  plane.clock.advance(600_001);
  await change(second.id, { name: 'gw-3' });
  expect(await relay()).toBe(second.id);
  expect((await changes()).at(-1).details.why).toBe('edge-1 was never online');
});

test('a network of an earlier version gets its relay with its next revision', async () => {
  const { id } = await add('edge-1');
  await withDatabase(plane.dataDir, (db) =>
    db.updateTable('networks').set({ relay: null }).where('id', '=', network).execute(),
  );
  await add('web-1', { peer_type: 'origin' });
  expect(await relay()).toBe(id);
});

const mark = (id: number) =>
  withDatabase(plane.dataDir, async (db) => {
    await db.updateTable('peers').set({ follows_relay: 1 }).where('id', '=', id).execute();
    await db.updateTable('peer_health').set({ follows_relay: 1 }).where('peer_id', '=', id).execute();
  });
const readReported = (id: number) =>
  withDatabase(plane.dataDir, async (db) => {
    const query = db.selectFrom('peer_health').select('follows_relay').where('peer_id', '=', id);
    return (await query.executeTakeFirstOrThrow()).follows_relay;
  });

test('a host that enrols again follows no relay until its report', async () => {
  const { id } = (await enrol('web-1', 'origin')).body.data.peer;
  await announce(id, 'online');
  await mark(id);
  const { body } = await enrol('web-1', 'origin');
  expect([body.data.peer.id, body.data.peer.follows_relay]).toEqual([id, undefined]);
  expect(await readReported(id)).toBe(0);
});

test('a host that states at enrolment that it uses the relay is marked, and its reports change no map', async () => {
  for (const name of ['web-1', 'web-1']) {
    const { peer, access_token } = (await enrol(name, 'origin', { follows_relay: true })).body.data;
    expect(peer.follows_relay).toBe(true);
    const { etag } = await read();
    const report = { token: access_token, body: { follows_relay: true } };
    expect((await plane.call('POST', `${path()}/peers/${peer.id}/report`, report)).status).toBe(200);
    expect([(await read()).etag, await readReported(peer.id)]).toEqual([etag, 1]);
  }
});

test('a connector that is named with its enrolment keeps its mark as a follower', async () => {
  // Its map has no relay, and it is not online.
  await add('web-1', { peer_type: 'origin', endpoint: undefined, follows_relay: true });
  const { id } = await add('edge-1', { follows_relay: true });
  expect(await relay()).toBe(id);
  const { peers } = await read();
  const marked = peers.filter((peer: { follows_relay?: boolean }) => peer.follows_relay);
  expect(marked.map((peer: { id: number }) => peer.id)).toEqual([id]);
});

describe('with another relay, a host loses its mark as a follower', () => {
  test.each([
    ['offline', 'offline', null, undefined],
    ['without a connection', 'online', '2030-01-01T00:00:00.000Z', undefined],
    ['online', 'online', null, true],
  ] as const)('that is %s: it follows %s %s %s', async (_what, announced, lostAt, follows) => {
    const first = await add('edge-1');
    const second = await add('edge-2');
    const host = await add('web-1', { peer_type: 'origin', endpoint: undefined });
    await announce(host.id, announced, lostAt);
    await mark(host.id);
    const { etag } = (await change(host.id, { name: 'web-2' })) && (await read());
    await change(first.id, { withdrawn: [range] });
    const headers = { 'if-none-match': etag, 'a-im': 'cpn-delta' };
    const { status, body } = await plane.call('GET', path(), { token, headers });
    expect([status, body.data.relay]).toEqual([226, second.id]);
    const changed = body.data.peers.find(({ id }: { id: number }) => id === host.id);
    // A peer without a change is not among the changes.
    expect(changed?.follows_relay).toBeUndefined();
    expect(changed === undefined).toBe(follows === true);
    expect((await read()).peers.find(({ id }: { id: number }) => id === host.id).follows_relay).toBe(follows);
    expect(await readReported(host.id)).toBe(follows ? 1 : 0);
  });
});
