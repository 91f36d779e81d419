import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { startExpiry } from '../../../src/control-plane/service/expiry.ts';
import { eventually } from '../../lab/eventually.ts';
import { closePlane, enroll, hour, makeFolder, makeKey, makeNetwork, openPlane, type Reply } from '../harness.ts';
import { long, openWaiting, read, untilWaiting, type Waiting } from '../push/long-poll.ts';

const route = '192.168.1.0/24';

let on: Waiting;
let network: number;
let key: string;
let laptop: { id: number; token: string; address: string };
let edge: { id: number; token: string };
beforeAll(async () => {
  on = await openWaiting();
});
afterAll(() => closePlane(on.plane));
/** A network at revision 3. */
beforeEach(async () => {
  network = await makeNetwork(on.plane, on.token, { routes: [route] });
  key = await makeKey(on.plane, on.token, network);
  laptop = await join({ name: 'laptop' });
  edge = await join({ name: 'edge', peer_type: 'connector' });
});

async function join(fields: object) {
  const { data } = (await enroll(on.plane, key, fields)).body;
  return { id: data.peer.id, token: data.access_token, address: data.peer.address };
}

const change = (id: number, body: object, token = on.token) =>
  on.plane.call('PATCH', `/api/networks/${network}/peers/${id}`, { token, body });
const list = (query = '', token = on.token) =>
  on.plane.call('GET', `/api/networks/${network}/peers${query}`, { token });
const map = (token = on.token) => on.plane.call('GET', `/api/networks/${network}`, { token });
const names = ({ body }: Reply) => body.data.map(({ name }: { name: string }) => name);
const mapped = ({ body }: Reply) => body.data.peers.map(({ name }: { name: string }) => name);
const from = (ms: number) => new Date(on.plane.clock.now().getTime() + ms).toISOString();

async function audited(action: string) {
  const { data } = (await on.plane.call('GET', '/api/audit', { token: on.token })).body;
  return data.find((entry: { action: string }) => entry.action === action);
}

describe('a suspended peer', () => {
  test('is in no map, whole or delta, for users and peers; it keeps its fields', async () => {
    const since = read(on, network, 3, `${long}`, edge.token);
    const whole = read(on, network, 3, long);
    await untilWaiting(on, network, 2);
    const { status, body } = await change(laptop.id, { suspended: true });
    expect([status, body.data]).toEqual([
      200,
      expect.objectContaining({ id: laptop.id, name: 'laptop', suspended_at: on.plane.clock.now().toISOString() }),
    ]);
    for (const reply of [await since, await whole, await map(edge.token)]) expect(mapped(reply)).toEqual(['edge']);
    expect(names(await list())).toEqual(['laptop', 'edge']);
    expect(names(await list('?suspended=true'))).toEqual(['laptop']);
    expect(names(await list('', edge.token))).toEqual(['edge']);
    expect((await list('?suspended=true', edge.token)).status).toBe(403);
    const taken = await change(edge.id, { name: 'Laptop' });
    expect([taken.status, Object.keys(taken.body.errors)]).toEqual([422, ['name']]);
    expect((await join({ name: 'third' })).address).not.toBe(laptop.address);
    const again = await change(laptop.id, { suspended: true });
    expect(again.body.data.suspended_at).toBe(body.data.suspended_at);
    expect(await audited('peer.suspend')).toMatchObject({ target: { id: laptop.id }, details: { network } });
  });

  test('is removed in the delta since an earlier revision, and new once it is back', async () => {
    const etag = (await map()).headers.get('etag') ?? '';
    const since = () =>
      on.plane.call('GET', `/api/networks/${network}`, {
        token: edge.token,
        headers: { 'if-none-match': etag, 'a-im': 'cpn-delta' },
      });
    await change(laptop.id, { suspended: true, name: 'lost' });
    const gone = await since();
    expect([gone.status, gone.body.data]).toEqual([226, expect.objectContaining({ peers: [], removed: [laptop.id] })]);
    await change(laptop.id, { suspended: false });
    expect((await since()).body.data).toMatchObject({
      peers: [{ name: 'lost', address: laptop.address }],
      removed: [],
    });
    expect((await audited('peer.resume')).details).toEqual({ network, suspended_at: null });
  });

  test('gets a 403 that says so, also where it waits, until it is resumed', async () => {
    const waiting = read(on, network, 3, long, laptop.token);
    await untilWaiting(on, network);
    await change(laptop.id, { suspended: true });
    const message = 'this peer is suspended; an admin resumes it with "cpn peer resume"';
    for (const reply of [await waiting, await map(laptop.token), await change(laptop.id, {}, laptop.token)]) {
      expect([reply.status, reply.body.message]).toEqual([403, message]);
    }
    await change(laptop.id, { suspended: false });
    expect(mapped(await map(laptop.token)).toSorted()).toEqual(['edge', 'laptop']);
  });

  test('gets no second answer to its enrolment', async () => {
    const host = { name: 'retry', public_key: Buffer.alloc(32, 'retry').toString('base64') };
    const first = await enroll(on.plane, key, host, 'one-enrolment-sent-twice');
    await change(first.body.data.peer.id, { suspended: true });
    expect((await enroll(on.plane, key, host, 'one-enrolment-sent-twice')).status).toBe(403);
  });

  test('is a newcomer among connectors when it is back', async () => {
    const since = (await list()).body.data.find(({ id }: { id: number }) => id === edge.id).serving_since;
    await change(edge.id, { suspended: true });
    on.plane.clock.advance(1000);
    const { body } = await change(edge.id, { suspended: false });
    expect(body.data.serving_since).toBe(new Date(Date.parse(since) + 1000).toISOString());
  });

  test('is one by no word of its own', async () => {
    for (const body of [{ suspended: true }, { suspended: false }, { expires_at: null }]) {
      const { status, body: reply } = await change(laptop.id, body, laptop.token);
      expect([status, reply.message]).toEqual([403, expect.stringContaining('a peer may not change')]);
    }
    expect((await change(laptop.id, { suspended: true }, await on.plane.signIn('viewer'))).status).toBe(403);
  });
});

describe('a peer that expires', () => {
  test('leaves the map at its time, without a request, and ends the waits', async () => {
    const expires_at = from(100);
    const { body } = await change(laptop.id, { expires_at: `${expires_at.slice(0, -1)}+00:00` });
    expect(body.data).toMatchObject({ expires_at, name: 'laptop' });
    expect((await map(laptop.token)).body.data.peers[0]).toMatchObject({ expires_at });
    const waiting = [read(on, network, 4, long, edge.token), read(on, network, 4, long, laptop.token)];
    await untilWaiting(on, network, 2);
    on.plane.clock.advance(100);
    const [others, own] = await Promise.all(waiting);
    expect([others?.body.data.revision, others && mapped(others)]).toEqual([5, ['edge']]);
    const message = `this peer expired on ${expires_at}; an admin resumes it with "cpn peer update --expires"`;
    expect([own?.status, own?.body.message]).toEqual([403, message]);
    expect(names(await list('?suspended=true'))).toEqual(['laptop']);
    expect(await audited('peer.expire')).toMatchObject({ actor: { kind: 'system' }, target: { id: laptop.id } });
  });

  test('is refused from that instant on, whether its network has noticed or not', async () => {
    await change(laptop.id, { expires_at: from(30 * 24 * hour) });
    expect((await map(laptop.token)).status).toBe(200);
    on.plane.clock.advance(30 * 24 * hour);
    on.token = await on.plane.signIn('owner');
    expect((await map(laptop.token)).status).toBe(403);
    expect((await map(edge.token)).status).toBe(200);
    // Any look at the clock is one at all peers.
    await change(edge.id, { expires_at: from(hour) });
    await vi.waitFor(async () => expect(mapped(await map(edge.token))).toEqual(['edge']), { timeout: 20_000 });
    on.plane.clock.advance(hour);
    expect(names(await list())).toEqual(['laptop', 'edge']);
  });

  test('is back with a later instant, or none, and by a resumption alone not', async () => {
    await change(laptop.id, { expires_at: from(50) });
    on.plane.clock.advance(50);
    await vi.waitFor(async () => expect(mapped(await map())).toEqual(['edge']), { timeout: 20_000 });
    const alone = await change(laptop.id, { suspended: false });
    expect([alone.status, Object.keys(alone.body.errors)]).toEqual([422, ['suspended']]);
    expect((await change(laptop.id, { suspended: false, expires_at: from(hour) })).status).toBe(200);
    expect(mapped(await map(laptop.token)).toSorted()).toEqual(['edge', 'laptop']);
    expect((await audited('peer.resume')).details).toEqual({ network, expires_at: from(hour) });
    expect((await change(laptop.id, { expires_at: null })).body.data.expires_at).toBeUndefined();
  });

  test('does not come back by that while it is suspended', async () => {
    await change(laptop.id, { suspended: true, expires_at: from(hour) });
    expect(mapped(await map())).toEqual(['edge']);
    await change(laptop.id, { expires_at: null });
    expect(mapped(await map())).toEqual(['edge']);
  });

  test.each(['2029-12-31T23:59:59Z', 'tomorrow', 7])('does not expire at %j', async (expires_at) => {
    const { status, body } = await change(laptop.id, { expires_at });
    expect([status, Object.keys(body.errors)]).toEqual([422, ['expires_at']]);
  });

  test('gets its end from its enrolment key', async () => {
    const path = `/api/networks/${network}/enrollment-keys`;
    const limited = await makeKey(on.plane, on.token, network, { name: 'temporary', peer_expires_in_hours: 48 });
    expect((await on.plane.call('GET', path, { token: on.token })).body.data.at(-1)).toMatchObject({
      peer_expires_in_hours: 48,
    });
    const { peer } = (await enroll(on.plane, limited, { name: 'guest' })).body.data;
    expect(peer.expires_at).toBe(from(48 * hour));
  });
});

test('what expired while no control plane ran is out as soon as one starts', async () => {
  const dataDir = makeFolder();
  const plane = await openPlane({ dataDir });
  const token = await plane.signIn('owner');
  const id = await makeNetwork(plane, token);
  const { peer } = (await enroll(plane, await makeKey(plane, token, id))).body.data;
  const expires_at = new Date(plane.clock.now().getTime() + hour).toISOString();
  await plane.call('PATCH', `/api/networks/${id}/peers/${peer.id}`, { token, body: { expires_at } });
  await plane.server.close();
  const later = new Date(Date.parse(expires_at) + hour);
  const next = await openPlane({ dataDir, now: () => later });
  onTestFinished(() => next.server.close());
  const read = () => next.call('GET', `/api/networks/${id}`, { token });
  await vi.waitFor(async () => expect((await read()).body.data.peers).toEqual([]), { timeout: 20_000 });
});

test('expiries are looked at every minute, whatever the clock does, and after a failure', async () => {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const failures: unknown[] = [];
  // The last one is further away than a timer of Node can be set: that fires at once.
  const answers = [
    async () => '2030-01-02T00:00:00.000Z',
    async () => '2099-01-01T00:00:00.000Z',
    () => Promise.reject(new Error('lost')),
    async () => null,
  ];
  const expire = vi.fn(async () => (answers.shift() ?? (async () => null))());
  const expiry = startExpiry(
    expire,
    () => new Date('2030-01-01'),
    (error) => failures.push(error),
  );
  for (const count of [1, 2, 3, 4, 5]) {
    await vi.advanceTimersByTimeAsync(count === 1 ? 0 : 1);
    expect(expire).toHaveBeenCalledTimes(count);
    await vi.advanceTimersByTimeAsync(59_999);
    expect(expire).toHaveBeenCalledTimes(count);
  }
  expect(failures).toHaveLength(1);
  expiry.reschedule();
  await vi.advanceTimersByTimeAsync(0);
  expect(expire).toHaveBeenCalledTimes(6);
  await expiry.stop();
  await vi.advanceTimersByTimeAsync(600_000);
  expect(expire).toHaveBeenCalledTimes(6);
});

test('an expiry that is rescheduled while it runs runs again', async () => {
  const first = Promise.withResolvers<null>();
  let runs = 0;
  const expire = () => {
    runs += 1;
    return runs === 1 ? first.promise : Promise.resolve(null);
  };
  const expiry = startExpiry(
    expire,
    () => new Date(),
    () => {},
  );
  await eventually('it runs', () => runs === 1);
  // A peer that expires now may have been added after the run read them.
  for (let time = 0; time < 3; time += 1) expiry.reschedule();
  first.resolve(null);
  await eventually('it runs again', () => runs === 2, { timeoutMs: 20_000, everyMs: 1 });
  await expiry.stop();
  expect(runs).toBe(2);
});
