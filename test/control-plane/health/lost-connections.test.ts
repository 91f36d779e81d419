import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { PeerMessage } from '../../../src/contract/network.ts';
import { LostConnections } from '../../../src/control-plane/health/lost-connections.ts';
import type { Addressed } from '../../../src/control-plane/push/peer-messages.ts';
import { eventually } from '../../lab/eventually.ts';
import { postgres } from '../databases.ts';
import { contextOver, makeFolder, type Plane, startPlane, withDatabase } from '../harness.ts';
import { actions, type OfficePeer, soon, startOffice } from './office.ts';

const times = { ...soon, closedMs: 300, repliedMs: 2_000, repeatMs: 60_000, retryMs: 200 };

/** A long poll as the daemon of a host makes it. */
async function wait(
  { plane, network }: { readonly plane: Plane; readonly network: number },
  peer: OfficePeer,
  { kinds = 'probe', end = new AbortController() } = {},
) {
  const url = `${plane.url}/api/networks/${network}`;
  const authorization = `Bearer ${peer.token}`;
  const first = await fetch(url, { headers: { authorization } });
  const etag = first.headers.get('etag') ?? '';
  const headers = {
    authorization,
    'if-none-match': etag,
    'a-im': 'cpn-delta',
    prefer: 'wait=30',
    'peer-messages': kinds,
  };
  const reply = fetch(url, { headers, signal: end.signal });
  reply.catch(() => {});
  return { end, etag, reply };
}

/** Two hosts that wait, are online, and reach each other directly. */
async function startWaiting({
  repeatMs = times.repeatMs,
  ...options
}: {
  readonly kinds?: string;
  readonly repeatMs?: number;
} = {}) {
  const office = await startOffice({ healthTimes: { ...times, repeatMs } });
  const { one, two, report, events } = office;
  const direct = ({ id }: OfficePeer) => ({ paths: [{ peer: id, path: 'direct' }] });
  const waits = { one: await wait(office, one), two: await wait(office, two, options) };
  await report(one, direct(two));
  await report(two, direct(one));
  await eventually('both are online', async () => (await events()).length === 2);
  return { office, waits };
}

const readMessages = async ({ reply }: Awaited<ReturnType<typeof wait>>): Promise<PeerMessage[]> => {
  const response = await reply;
  return response.status === 304
    ? []
    : (((await response.json()) as { data: { messages?: PeerMessage[] } }).data.messages ?? []);
};

/** A host that waits again after each reply. */
function follow(target: Parameters<typeof wait>[0], peer: OfficePeer): void {
  let isOver = false;
  onTestFinished(() => {
    isOver = true;
  });
  const run = async () => {
    while (!isOver) await readMessages(await wait(target, peer));
  };
  run().catch(() => {});
}

const readRows = (dataDir: string) => withDatabase(dataDir, (db) => db.selectFrom('peer_health').selectAll().execute());

test('a host whose connection closes is probed by another one, in reply to its request for the map', async () => {
  const { office, waits } = await startWaiting();
  const { one, two, plane, report, events } = office;
  waits.one.end.abort();
  const response = await waits.two.reply;
  expect([response.status, response.headers.get('etag'), response.headers.get('delta-base')]).toEqual([
    226,
    waits.two.etag,
    waits.two.etag,
  ]);
  expect(((await response.json()) as { data: object }).data).toMatchObject({
    peers: [],
    removed: [],
    messages: [{ kind: 'probe', data: { peers: [one.id] } }],
  });
  expect(await events()).toHaveLength(2);
  plane.clock.advance(4_000);
  await report(two, { probes: [{ peer: one.id, answered: false }] });
  await eventually('it is offline', async () => (await events()).at(-1) === 'peer.offline one');
  const { paths } = (await office.health()).peers.find(({ id }) => id === two.id) ?? { paths: [] };
  expect(paths.find(({ peer }) => peer === one.id)?.path).toBe('down');
  plane.clock.advance(1_000);
  await office.call(one);
  await eventually('it is back', async () => (await events()).at(-1) === 'peer.online one');
});

test('a host that returns by another request, and is cut before it waits again, is asked about again', async () => {
  const { office, waits } = await startWaiting({ repeatMs: 300 });
  const { one, two, plane, report, events, call } = office;
  waits.one.end.abort();
  await readMessages(waits.two);
  plane.clock.advance(4_000);
  await report(two, { probes: [{ peer: one.id, answered: false }] });
  await eventually('it is offline', async () => (await events()).at(-1) === 'peer.offline one');
  plane.clock.advance(1_000);
  await call(one);
  await eventually('it is back', async () => (await events()).at(-1) === 'peer.online one');
  expect(await readMessages(await wait(office, two))).toEqual([{ kind: 'probe', data: { peers: [one.id] } }]);
});

test('a host that makes another request once its connection closed, and is cut then, is asked about', async () => {
  const { office, waits } = await startWaiting();
  waits.one.end.abort();
  await delay(times.closedMs / 3);
  await office.call(office.one);
  expect(await readMessages(waits.two)).toEqual([{ kind: 'probe', data: { peers: [office.one.id] } }]);
});

test('probes of a peer are awaited once hosts were asked, and of no other peer', async () => {
  const { office } = await startWaiting();
  const { one, two, plane, network, call } = office;
  for (const peer of [one, two]) await call(peer);
  await withDatabase(plane.dataDir, async (db) => {
    const context = contextOver(db, plane);
    const presence = { requestsOf: () => 0, expect: () => {} };
    const sent: number[] = [];
    const messages = {
      send: async (_: number, some: Iterable<Addressed>) => void sent.push(...[...some].map(([peer]) => peer)),
    };
    const losses = new LostConnections(context, presence, messages, { ...times, failures: { note: () => {} } });
    expect(losses.isAwaited([one.id, two.id])).toBe(false);
    losses.ask(network, [one.id]);
    await eventually('a host is asked', () => sent.length > 0);
    expect([sent, losses.isAwaited([one.id, two.id]), losses.isAwaited([two.id])]).toEqual([[two.id], true, false]);
    await losses.stop();
  });
});

test('a host that another one reaches stays online, and is probed again', async () => {
  const { office, waits } = await startWaiting();
  const { one, two, plane, report, events, health } = office;
  waits.one.end.abort();
  await readMessages(waits.two);
  await report(two, { probes: [{ peer: one.id, answered: true }] });
  const whyOf = async () => (await health()).peers.find(({ id }) => id === one.id)?.why;
  await eventually('why', async () => (await whyOf()) === 'its connection was lost, but 1 of 1 host reaches it');
  plane.clock.advance(4_000);
  await report(two, { probes: [{ peer: one.id, answered: false }] });
  await eventually('it is offline', async () => (await events()).at(-1) === 'peer.offline one');
});

test('where all connections close at once, a host that stays away is asked about when another one is back', async () => {
  const { office, waits } = await startWaiting();
  const { one, two } = office;
  waits.one.end.abort();
  waits.two.end.abort();
  // Both are overdue, and no host is left to ask.
  await delay(3 * times.closedMs);
  const back = await wait(office, two);
  expect(await readMessages(back)).toEqual([{ kind: 'probe', data: { peers: [one.id] } }]);
});

test('a host that reconnects in time is asked about by no one', async () => {
  const { office, waits } = await startWaiting();
  waits.one.end.abort();
  await wait(office, office.one);
  // The same question about another host comes alone.
  const third = await wait(office, office.three);
  await eventually('it is online', async () => (await office.events()).length === 3);
  third.end.abort();
  expect(await readMessages(waits.two)).toEqual([{ kind: 'probe', data: { peers: [office.three.id] } }]);
});

test('a host that drops its connections again and again is probed no more often than one that is gone', async () => {
  const { office, waits } = await startWaiting();
  const { one, two, three } = office;
  waits.one.end.abort();
  expect(await readMessages(waits.two)).toEqual([{ kind: 'probe', data: { peers: [one.id] } }]);
  const third = await wait(office, three);
  await eventually('it is online', async () => (await office.events()).length === 3);
  const again = await wait(office, two);
  for (let time = 0; time < 3; time += 1) {
    const dropped = await wait(office, one);
    await office.report(one, {});
    dropped.end.abort();
  }
  third.end.abort();
  expect(await readMessages(again)).toEqual([{ kind: 'probe', data: { peers: [three.id] } }]);
});

test('a host that makes no request after a reply is asked about too', async () => {
  const { office, waits } = await startWaiting();
  const { plane, token, network, one } = office;
  await plane.call('PATCH', `/api/networks/${network}`, { token, body: { description: 'another' } });
  expect([(await waits.one.reply).status, (await waits.two.reply).status]).toEqual([226, 226]);
  const again = await wait(office, office.two);
  expect(await readMessages(again)).toEqual([{ kind: 'probe', data: { peers: [one.id] } }]);
});

test('a host that takes no messages gets none, and its wait goes on', async () => {
  const { office, waits } = await startWaiting({ kinds: 'later' });
  const { one, plane, token, network } = office;
  waits.one.end.abort();
  await eventually('the question is stored', () =>
    withDatabase(
      plane.dataDir,
      async (db) => (await db.selectFrom('peer_messages').selectAll().execute()).length === 1,
    ),
  );
  await plane.call('PATCH', `/api/networks/${network}`, { token, body: { description: 'another' } });
  const response = await waits.two.reply;
  expect(((await response.json()) as { data: object }).data).not.toHaveProperty('messages');
  expect(await office.stateOf(one)).toBe('online');
});

test.runIf(postgres)(
  'of two replicas, one has a host probe that waits at the other, and a host that goes there is no loss',
  async () => {
    const dataDir = makeFolder();
    const office = await startOffice({ dataDir, healthTimes: times });
    const { one, two, three, plane, network, token, report, events } = office;
    const other = await startPlane({ dataDir, healthTimes: times, now: plane.clock.now });
    const there = actions(other, network, token);
    const waits = await wait(office, one);
    const witness = await wait({ plane: other, network }, two);
    const third = await wait(office, three);
    await report(one, { paths: [{ peer: two.id, path: 'direct' }] });
    await there.report(two, { paths: [one, three].map(({ id }) => ({ peer: id, path: 'direct' })) });
    await eventually('all are online', async () => (await events()).length === 3);
    waits.end.abort();
    // On a busy machine the question is repeated before it is read.
    const messages = new Set((await readMessages(witness)).map((each) => JSON.stringify(each)));
    expect([...messages]).toEqual([JSON.stringify({ kind: 'probe', data: { peers: [one.id] } })]);
    for (const peer of [two, three]) follow({ plane: other, network }, peer);
    third.end.abort();
    const readThird = async () => (await readRows(dataDir)).find(({ peer_id }) => peer_id === three.id);
    await eventually('its loss is stored, and its wait elsewhere after it', async () => {
      const { last_seen, lost_at } = (await readThird()) ?? {};
      return lost_at != null && last_seen != null && last_seen > lost_at;
    });
    plane.clock.advance(4_000);
    await there.report(two, { probes: [one, three].map(({ id }) => ({ peer: id, answered: false })) });
    await eventually('the first is offline', async () => (await events()).at(-1) === 'peer.offline one');
    await new Promise((resolve) => setTimeout(resolve, 6 * soon.tickMs));
    expect((await events()).filter((event) => event.startsWith('peer.offline'))).toEqual(['peer.offline one']);
  },
);
