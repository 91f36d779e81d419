import { expect, test } from 'vitest';
import type { Role } from '../../../src/contract/auth.ts';
import type { Event } from '../../../src/contract/event.ts';
import { Health, type PathHealth } from '../../../src/contract/health.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import { postgres } from '../databases.ts';
import { makeFolder, quiet, startPlane, withDatabase } from '../harness.ts';
import { soon } from '../health/office.ts';
import { attemptIn, observedAs, type PathPeer, pathActions, startPaths, startTrying } from './paths-office.ts';

const minute = 60_000;
type Office = Awaited<ReturnType<typeof startPaths>>;
const start = () => startPaths({ healthTimes: { ...quiet, ...soon } });

async function listEvents({ plane, token, network }: Pick<Office, 'plane' | 'token' | 'network'>): Promise<Event[]> {
  const { body } = await plane.call('GET', `/api/networks/${network}/events?after=0&limit=500`, { token });
  return body.data.filter(({ type }: Event) => type === 'path.changed');
}

/** The path that a host reports to another, as a reader of the network's health gets it. */
async function pathOf(office: Office, from: PathPeer, to: PathPeer, token = office.token): Promise<PathHealth> {
  const { body } = await office.plane.call('GET', `/api/networks/${office.network}/health`, { token });
  const own = Health.parse(body.data).peers.find(({ id }) => id === from.id);
  return own?.paths.find(({ peer }) => peer === to.id) ?? expect.unreachable();
}

const reportPath = ({ plane, network }: Office, from: PathPeer, path: PathHealth) => {
  const body = { paths: [path] };
  return plane.call('POST', `/api/networks/${network}/peers/${from.id}/report`, { token: from.token, body });
};

async function becomeDirect({ one, two, state, ...office }: Office): Promise<void> {
  const attempt = attemptIn((await startTrying({ one, two, state, ...office }))[0]);
  await state(two, { proven: [{ peer: one.id, attempt }] });
  await state(one, { proven: [{ peer: two.id, attempt }] });
  for (const peer of [one, two]) await office.take(peer);
}

test('a pair that becomes direct, and one that is relayed again, are events with both names', async () => {
  const office = await start();
  const { one, two, relay, plane, token, network } = office;
  const attempt = attemptIn((await startTrying(office))[0]);
  await office.state(two, { proven: [{ peer: one.id, attempt }] });
  expect(await listEvents(office)).toEqual([]);
  const { headers } = await plane.call('GET', `/api/networks/${network}/health`, { token });
  await office.state(one, { proven: [{ peer: two.id, attempt }] });
  const named = { type: 'path.changed', peer: { id: one.id, name: 'host-2' }, route: null };
  const pair = { id: two.id, name: 'host-3' };
  expect(await listEvents(office)).toMatchObject([{ ...named, details: { with: pair, path: 'direct' } }]);
  // A waiting reader of the health gets the change.
  const again = await plane.call('GET', `/api/networks/${network}/health`, {
    ...{ token, headers: { 'if-none-match': headers.get('etag') ?? '' } },
  });
  expect(again.status).toBe(200);
  await office.state(two, { ended: [{ peer: one.id, why: 'lost' }] });
  await office.state(one, { ended: [{ peer: two.id, why: 'lost' }] });
  const via = { id: relay.id, name: 'host-1' };
  expect((await listEvents(office)).slice(1).map(({ details }) => details)).toEqual([
    { with: pair, path: 'relayed', via, why: 'lost' },
  ]);
});

test('a pair that keeps changing has a few events, and the last one states its path once there is room', async () => {
  const office = await start();
  const { one, two, state, plane } = office;
  for (let round = 0; round < 5; round += 1) {
    await becomeDirect(office);
    plane.clock.advance(30_000);
    await state(one, { ended: [{ peer: two.id, why: 'idle' }] });
  }
  await becomeDirect(office);
  expect((await listEvents(office)).map(({ details }) => details.path)).toEqual(
    [1, 2, 3].flatMap(() => ['direct', 'relayed']),
  );
  plane.clock.advance(31 * minute);
  await state(one, {});
  expect((await listEvents(office)).map(({ details }) => details.path).slice(6)).toEqual(['direct']);
});

test('a network has at most 60 such events at once', async () => {
  const { add, state, network, ...office } = await start();
  const hosts: PathPeer[] = [];
  for (let count = 0; count < 12; count += 1) hosts.push(await add());
  const at = office.plane.clock.now().toISOString();
  const pairs = hosts.flatMap(({ id: a }, index) => hosts.slice(index + 1).map(({ id: b }) => ({ a, b })));
  const row = { network_id: network, state: 'direct' as const, attempt: 1, tries: 1, started_at: at, at, next_at: at };
  const data = JSON.stringify({ by: 1, observers: 1, proven: [] });
  const rows = pairs.map((pair) => ({ ...row, ...pair, data }));
  await withDatabase(office.plane.dataDir, (db) => db.insertInto('peer_pairs').values(rows).execute());
  for (const host of hosts) await state(host, {});
  expect([rows.length, (await listEvents({ ...office, network })).length]).toEqual([66, 60]);
});

test('a path that hosts report is direct since the switch, until one ends it', async () => {
  const office = await start();
  const { one, two, state, plane } = office;
  await becomeDirect(office);
  const since = plane.clock.now().toISOString();
  const direct = { peer: two.id, path: 'direct' } as const;
  await reportPath(office, one, { peer: two.id, path: 'relayed', via: office.relay.id });
  expect(await pathOf(office, one, two)).toEqual({ peer: two.id, path: 'relayed', via: office.relay.id });
  await reportPath(office, one, direct);
  expect(await pathOf(office, one, two)).toEqual({ ...direct, direct_since: since });
  await state(one, { ended: [{ peer: two.id, why: 'moved' }] });
  const attempt = { at: since, outcome: 'ended', why: 'moved' };
  expect(await pathOf(office, one, two)).toEqual({ ...direct, attempt });
});

test('owners and admins get the endpoints that both hosts tried, other readers the outcomes, and hosts neither', async () => {
  const office = await start();
  const { one, two, state, plane, network } = office;
  const relayed = { peer: two.id, path: 'relayed', via: office.relay.id } as const;
  await reportPath(office, one, relayed);
  const number = attemptIn((await startTrying(office))[0]);
  expect(await pathOf(office, one, two)).toEqual(relayed);
  const [atTwo, atOne] = ['203.0.113.3:4711', '[2001:db8::2]:51820'];
  const tried = [{ endpoint: atTwo, outcome: 'no-answer' as const }];
  await state(one, { failed: [{ peer: two.id, attempt: number, tried }] });
  // It ended with the first statement. The second one adds to it.
  await state(two, { failed: [{ peer: one.id, attempt: number, tried: [{ endpoint: atOne, outcome: 'handshake' }] }] });
  await state(two, { failed: [{ peer: one.id, attempt: number, tried: [] }] });
  const outcomes = [
    { by: one.id, outcome: 'no-answer', endpoint: atTwo },
    { by: two.id, outcome: 'handshake', endpoint: atOne },
  ];
  const common = { at: plane.clock.now().toISOString(), outcome: 'failed' };
  const readBy = async (role: Role) => (await pathOf(office, one, two, await plane.signIn(role))).attempt;
  for (const role of ['owner', 'admin'] as const)
    expect([role, await readBy(role)]).toEqual([role, { ...common, tried: outcomes }]);
  const hidden = outcomes.map(({ by, outcome }) => ({ by, outcome }));
  for (const role of ['member', 'viewer'] as const)
    expect([role, await readBy(role)]).toEqual([role, { ...common, tried: hidden }]);
  expect(await pathOf(office, one, two, one.token)).toEqual(relayed);
  const { body } = await plane.call('GET', `/api/networks/${network}/health`, { token: two.token });
  expect(JSON.stringify(body)).not.toContain('4711');
});

test('why no attempt began is there too', async () => {
  const office = await start();
  const { one, two, relay, add, state } = office;
  const second = await add({ peer_type: 'connector', endpoint: '198.51.100.2:51820' });
  await reportPath(office, one, { peer: two.id, path: 'relayed', via: relay.id });
  await state(one, { candidates: [], wanted: [two.id] });
  await state(two, { candidates: [] });
  for (const peer of [one, two])
    for (const [port, connector] of [relay, second].entries())
      await state(connector, observedAs(`203.0.113.${peer.id}:${1000 + port}`, peer));
  expect((await pathOf(office, one, two)).attempt).toMatchObject({
    ...{ outcome: 'symmetric', symmetric: [one.id, two.id] },
  });
  const other = await start();
  await reportPath(other, other.one, { peer: other.two.id, path: 'relayed', via: other.relay.id });
  await startTrying({
    ...other,
    state: (peer, body) =>
      other.state(peer, peer === other.relay ? observedAs('127.0.0.1:1', other.one, other.two) : body),
  });
  expect((await pathOf(other, other.one, other.two)).attempt).toMatchObject({ outcome: 'no-endpoints' });
});

test.runIf(postgres)('of two replicas that hear of one change, one makes the event', async () => {
  const dataDir = makeFolder();
  const office = await startPaths({ dataDir, healthTimes: quiet });
  const { one, two, plane, network } = office;
  const others = { dataDir, proxies: [parsePrefix('127.0.0.0/8')], now: plane.clock.now, healthTimes: quiet };
  const there = pathActions(await startPlane(others), network);
  await becomeDirect(office);
  await Promise.all([
    office.state(one, { ended: [{ peer: two.id, why: 'lost' }] }),
    there.state(two, { ended: [{ peer: one.id, why: 'lost' }] }),
  ]);
  expect((await listEvents(office)).map(({ details }) => details.path)).toEqual(['direct', 'relayed']);
});
