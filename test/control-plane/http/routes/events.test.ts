import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Event } from '../../../../src/contract/event.ts';
import { ChangeNotifier } from '../../../../src/control-plane/push/change-notifier.ts';
import { pruneEvents } from '../../../../src/control-plane/service/retention.ts';
import { insertDelivery } from '../../../../src/control-plane/store/deliveries.ts';
import { insertEvent } from '../../../../src/control-plane/store/events.ts';
import {
  closePlane,
  enroll,
  hour,
  makeKey,
  makeNetwork,
  openPlane,
  type Plane,
  publicKey,
  withDatabase,
} from '../../harness.ts';

let plane: Plane;
let token: string;
const healthNotifier = new ChangeNotifier();

beforeAll(async () => {
  plane = await openPlane({ healthNotifier });
  token = await plane.signIn('owner');
});
afterAll(() => closePlane(plane));

const read = (network: number, query = '', headers: Record<string, string> = {}) =>
  plane.call('GET', `/api/networks/${network}/events${query}`, { token, headers });

/** A network with one event for each of these names, oldest first, and the ids of the events. */
async function makeEvents(...names: string[]) {
  const network = await makeNetwork(plane, token, { name: 'before' });
  for (const name of names) await rename(network, name);
  const ids: number[] = (await read(network)).body.data.map(({ id }: { id: number }) => id);
  return { network, ids };
}

const rename = (network: number, name: string) =>
  plane.call('PATCH', `/api/networks/${network}`, { token, body: { name } });

const namesOf = ({ body }: Awaited<ReturnType<typeof read>>) =>
  body.data.map(({ details }: { details: { name: string } }) => details.name);

/** Passes once the newest event of a network has these details. */
const untilLast = (network: number, details: object) =>
  vi.waitFor(async () => expect((await read(network, '?limit=1')).body.data[0]?.details).toEqual(details), 20_000);

/** Passes once so many wait for an event of the network. */
const untilWaiting = (network: number, count = 1) =>
  vi.waitFor(() => expect(healthNotifier.count(network)).toBe(count), { timeout: 20_000, interval: 5 });

test('the life of a network and its peers', async () => {
  const network = await makeNetwork(plane, token);
  const key = await makeKey(plane, token, network);
  const idempotencyKey = 'a'.repeat(32);
  const public_key = publicKey();
  const { peer, access_token } = (await enroll(plane, key, { public_key }, idempotencyKey)).body.data;
  await enroll(plane, key, { public_key }, idempotencyKey);
  const path = `/api/networks/${network}/peers/${peer.id}`;
  const change = (body: object, by = token) => plane.call('PATCH', path, { token: by, body });
  await change({ public_key: publicKey() }, access_token);
  await change({ name: 'renamed' });
  await change({ suspended: true });
  await change({ suspended: false });
  await rename(network, 'lab');
  await rename(network, 'lab');
  await change({ expires_at: new Date(plane.clock.now().getTime() + 100).toISOString() });
  plane.clock.advance(100);
  await untilLast(network, { reason: 'expired' });
  await change({ suspended: true });
  await plane.call('DELETE', path, { token });
  const { body } = await read(network);
  // The change of its key was a request of the peer.
  const events = (body.data as Event[]).flatMap(({ type, peer, details }) =>
    type === 'peer.online' ? [] : [{ type, peer, details }],
  );
  const [named, renamed] = ['edge', 'renamed'].map((name) => ({ id: peer.id, name }));
  expect(events).toEqual([
    { type: 'peer.enrolled', peer: named, details: { reason: 'enrolled' } },
    { type: 'key.rotated', peer: named, details: {} },
    { type: 'peer.removed', peer: renamed, details: { reason: 'suspended' } },
    { type: 'peer.enrolled', peer: renamed, details: { reason: 'resumed' } },
    { type: 'network.updated', peer: null, details: { name: 'lab' } },
    { type: 'peer.removed', peer: renamed, details: { reason: 'expired' } },
    { type: 'peer.removed', peer: renamed, details: { reason: 'removed' } },
  ]);
  expect(body.data[0]).toMatchObject({ network, route: null, at: '2030-01-01T00:00:00.000Z' });
});

test('the newest come without after, those after an id with it, oldest first', async () => {
  const { network, ids } = await makeEvents('a', 'b', 'c', 'd');
  expect(namesOf(await read(network))).toEqual(['a', 'b', 'c', 'd']);
  expect(namesOf(await read(network, '?limit=2'))).toEqual(['c', 'd']);
  expect(namesOf(await read(network, '?after=0&limit=2'))).toEqual(['a', 'b']);
  expect(namesOf(await read(network, `?after=${ids[1]}`))).toEqual(['c', 'd']);
  expect(namesOf(await read(network, `?after=${ids[3]}`))).toEqual([]);
});

test('an id of another history of the database counts as none', async () => {
  const { network, ids } = await makeEvents('a', 'b');
  const beyond = (ids[1] ?? 0) + 1000;
  expect(namesOf(await read(network, `?after=${beyond}`, { prefer: 'wait=45' }))).toEqual(['a', 'b']);
});

test.each(['?after=-1', '?after=x', '?limit=0', '?limit=1001'])('%s is refused', async (query) => {
  const { network } = await makeEvents();
  expect((await read(network, query)).status).toBe(422);
});

test('a request waits for an event beyond after', async () => {
  const { network, ids } = await makeEvents('a');
  const waiting = read(network, `?after=${ids[0]}`, { prefer: 'wait=45' });
  await untilWaiting(network);
  // A change of the health alone ends no wait.
  healthNotifier.notify(network);
  await untilWaiting(network);
  await rename(network, 'b');
  const reply = await waiting;
  expect(namesOf(reply)).toEqual(['b']);
  expect(reply.headers.get('preference-applied')).toBe('wait=45');
});

test('a request waits in a network without events', async () => {
  const { network } = await makeEvents();
  const waiting = read(network, '?after=0', { prefer: 'wait=45' });
  await untilWaiting(network);
  await rename(network, 'first');
  expect(namesOf(await waiting)).toEqual(['first']);
});

test('a wait that ends without an event brings none', async () => {
  const { network } = await makeEvents();
  const reply = await read(network, '?after=0', { prefer: 'wait=1' });
  expect([reply.status, reply.body, reply.headers.get('preference-applied')]).toEqual([200, { data: [] }, 'wait=1']);
  const atOnce = await read(network, '', { prefer: 'wait=45' });
  expect(atOnce.headers.get('preference-applied')).toBeNull();
});

test('a user whose session ended during the wait gets no event', async () => {
  const { network } = await makeEvents();
  const viewer = await plane.signIn('viewer');
  const waiting = plane.call('GET', `/api/networks/${network}/events?after=0`, {
    token: viewer,
    headers: { prefer: 'wait=45' },
  });
  await untilWaiting(network);
  await plane.call('POST', '/api/auth/logout', { token: viewer });
  await rename(network, 'secret');
  expect((await waiting).status).toBe(401);
});

describe('pruning', () => {
  const prune = (options: Parameters<typeof pruneEvents>[1] = {}) =>
    withDatabase(plane.dataDir, (db) => pruneEvents({ db, readTime: async () => plane.clock.now() }, options));

  test('of each network the newest are kept, and their ids go on', async () => {
    const crowded = await makeEvents('a', 'b', 'c', 'd', 'e', 'f');
    const other = await makeEvents('x', 'y', 'z');
    await prune({ mostOfEach: 3, batch: 2, pause: async () => {} });
    expect(namesOf(await read(crowded.network, '?after=0'))).toEqual(['d', 'e', 'f']);
    expect(namesOf(await read(other.network))).toEqual(['x', 'y', 'z']);
    await rename(crowded.network, 'g');
    expect(namesOf(await read(crowded.network, `?after=${crowded.ids[5]}`))).toEqual(['g']);
  });

  test('many events of some types take no place of the others', async () => {
    const { network } = await makeEvents('a', 'b');
    const at = plane.clock.now().toISOString();
    await withDatabase(plane.dataDir, async (db) => {
      for (let count = 1; count <= 9; count += 1) {
        for (const type of ['pin.mismatch', 'key.rotated'] as const) {
          if (count > 7 && type === 'key.rotated') continue;
          await insertEvent(db, { network, at, type, peer: null, route: null, details: { name: count } });
        }
      }
    });
    await prune({ mostOfEach: 8, batch: 2, pause: async () => {} });
    expect(namesOf(await read(network, '?after=0'))).toEqual(['a', 'b', 5, 6, 7, 7, 8, 9]);
  });

  test('after 30 days an event is gone, and a delivery after 7', async () => {
    const { network } = await makeEvents('old');
    const at = plane.clock.now().toISOString();
    const deliveries = () =>
      withDatabase(plane.dataDir, (db) => db.selectFrom('deliveries').select('event_id').execute());
    await withDatabase(plane.dataDir, (db) =>
      insertDelivery(db, { id: 9, at, type: 'peer.online', network, peer: null, route: null, details: {} }),
    );
    plane.clock.advance(29 * 24 * hour);
    token = await plane.signIn('owner');
    await rename(network, 'new');
    plane.clock.advance(23 * hour);
    expect(await deliveries()).toEqual([{ event_id: 9 }]);
    await prune();
    expect(await deliveries()).toEqual([]);
    expect(namesOf(await read(network))).toEqual(['old', 'new']);
    plane.clock.advance(hour + 1);
    token = await plane.signIn('owner');
    await prune({ batch: 1, pause: async () => {} });
    expect(namesOf(await read(network))).toEqual(['new']);
  });
});

test('events go with their network', async () => {
  const { network } = await makeEvents('a');
  await plane.call('DELETE', `/api/networks/${network}`, { token });
  expect((await read(network)).status).toBe(404);
  const left = await withDatabase(plane.dataDir, (db) =>
    db.selectFrom('events').select('id').where('network_id', '=', network).execute(),
  );
  expect(left).toEqual([]);
});
