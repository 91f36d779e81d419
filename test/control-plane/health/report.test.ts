import { expect, test } from 'vitest';
import { NetworkTraffic, PeerTraffic } from '../../../src/contract/traffic.ts';
import { eventually } from '../../lab/eventually.ts';
import { withDatabase } from '../harness.ts';
import { type OfficePeer, startOffice } from './office.ts';

test('a report is merged into the earlier ones, and a complete one replaces them', async () => {
  const { one, two, three, report, health } = await startOffice();
  // The range of the network stands for relaying.
  const routes = ['192.168.1.0/24', '10.77.0.0/24'].map((route) => ({ route, connector: two.id }));
  const reply = await report(one, {
    paths: [
      { peer: two.id, path: 'direct', rtt_ms: 1.26 },
      { peer: three.id, path: 'relayed', via: two.id },
    ],
    routes,
    drift: 2,
  });
  expect(reply.status).toBe(200);
  await report(one, { paths: [{ peer: two.id, path: 'down' }], problem: 'nft failed' });
  const read = async () => (await health()).peers.find(({ id }) => id === one.id);
  expect(await read()).toMatchObject({
    ...{ name: 'one', state: 'online', drift: 2, problem: 'nft failed', pin_mismatches: [] },
    paths: [
      { peer: three.id, path: 'relayed', via: two.id },
      { peer: two.id, path: 'down' },
    ],
    routes,
  });
  await report(one, { problem: null });
  expect(await read()).toMatchObject({ drift: 2, problem: null });
  await report(one, { complete: true, pin_mismatches: [two.id, two.id] });
  expect(await read()).toMatchObject({ paths: [], routes: [], drift: null, pin_mismatches: [two.id] });
});

test('the reply is how the network sees the host', async () => {
  const { one, two, three, report } = await startOffice();
  await report(one, { paths: [{ peer: three.id, path: 'direct' }] });
  await report(two, { paths: [{ peer: three.id, path: 'down' }] });
  const { body } = await report(three, {});
  expect(body.data).toEqual({
    ...{ state: 'online', reachable_by: 1, witnesses: 2 },
    why: 'it reaches the control plane; 1 of 2 hosts reaches it',
  });
});

test('what is not in the network, and a path to itself, is left out', async () => {
  const { one, two, plane, report, health } = await startOffice();
  const { status } = await report(one, {
    paths: [
      { peer: one.id, path: 'direct' },
      { peer: 999_999, path: 'direct' },
      { peer: two.id, path: 'relayed', via: 999_999 },
    ],
    routes: [
      { route: '192.168.1.0/24', connector: 999_999 },
      { route: '192.168.77.0/24', connector: two.id },
    ],
    pin_mismatches: [999_999, one.id],
  });
  expect(status).toBe(200);
  const own = (await health()).peers.find(({ id }) => id === one.id);
  expect(own).toMatchObject({ paths: [{ peer: two.id, path: 'relayed' }], routes: [], pin_mismatches: [] });
  expect(own?.paths[0]).not.toHaveProperty('via');
  expect((await plane.call('GET', '/readyz')).status).toBe(200);
});

test('a peer reports for itself alone, and reads its own health alone', async () => {
  const { one, two, network, plane, stranger, token } = await startOffice();
  const path = (id: number) => `/api/networks/${network}/peers/${id}/report`;
  const post = async (id: number, as: string) => (await plane.call('POST', path(id), { token: as, body: {} })).status;
  expect(await post(two.id, one.token)).toBe(403);
  expect(await post(one.id, token)).toBe(403);
  expect(await post(one.id, stranger.token)).toBe(404);
  const { body } = await plane.call('GET', `/api/networks/${network}/health`, { token: one.token });
  expect(body.data).toMatchObject({ peers: [{ id: one.id }], routes: [] });
  expect(body.data.peers).toHaveLength(1);
});

test('a report changes the row of its sender alone, and not the revision of the network', async () => {
  const { one, two, network, plane, report, health, token } = await startOffice();
  await report(two, { problem: 'mine' });
  const revision = async () => (await plane.call('GET', `/api/networks/${network}`, { token })).headers.get('etag');
  const before = [await revision(), (await health()).peers.filter(({ id }) => id !== one.id)];
  await report(one, { complete: true, paths: [{ peer: two.id, path: 'down' }], problem: 'yours' });
  const { peers } = await health();
  expect(peers.find(({ id }) => id === two.id)).toMatchObject({ problem: 'mine', paths: [] });
  expect(await revision()).toBe(before[0]);
});

test('what is larger than the contract allows is refused', async () => {
  const { one, report } = await startOffice();
  const many = Array.from({ length: 501 }, (_, index) => ({ peer: index + 1, path: 'direct' }));
  expect((await report(one, { paths: many })).status).toBe(422);
  expect((await report(one, { problem: 'x'.repeat(301) })).status).toBe(422);
  expect((await report(one, { paths: many.slice(1) })).status).toBe(200);
  expect((await report(one, { problem: 'x'.repeat(200_000) })).status).toBe(413);
});

test('thirty reports at once are taken, and one more every two seconds', async () => {
  const { one, two, plane, report } = await startOffice();
  for (let count = 0; count < 30; count += 1) expect((await report(one, {})).status).toBe(200);
  const refused = await report(one, {});
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '2']);
  expect((await report(two, {})).status).toBe(200);
  plane.clock.advance(2000);
  expect((await report(one, {})).status).toBe(200);
  expect((await report(one, {})).status).toBe(429);
});

test('a report that is refused counts, and above the limit none is checked', async () => {
  const { one, report } = await startOffice();
  for (let count = 0; count < 30; count += 1) expect((await report(one, { drift: -1 })).status).toBe(422);
  expect((await report(one, { drift: -1 })).status).toBe(429);
});

test('a read with the ETag waits for the next report', async () => {
  const { one, network, plane, report, token } = await startOffice();
  const path = `/api/networks/${network}/health`;
  const first = await plane.call('GET', path, { token });
  const headers = { 'if-none-match': first.headers.get('etag') ?? '', prefer: 'wait=45' };
  const waiting = plane.call('GET', path, { token, headers });
  await report(one, { drift: 1 });
  const { status, body, headers: sent } = await waiting;
  expect([status, sent.get('preference-applied')]).toEqual([200, 'wait=45']);
  expect(body.data.peers.find(({ id }: { id: number }) => id === one.id)).toMatchObject({ drift: 1 });
  // Its presence is an event too.
  let named = sent.get('etag') ?? '';
  await eventually('the revision stays', async () => {
    const same = await plane.call('GET', path, { token, headers: { 'if-none-match': named } });
    const isSame = same.status === 304 && same.headers.get('etag') === named;
    named = same.headers.get('etag') ?? '';
    return isSame;
  });
});

test('the traffic of the last day is kept of each host, and goes with it', async () => {
  const { plane, network, one, two, token, report } = await startOffice();
  const path = (peer: OfficePeer) => [{ peer: peer.id, path: 'direct', rx_rate: 6000, tx_rate: 600 }];
  await report(one, { paths: path(two) });
  plane.clock.advance(60_000);
  await report(one, {});
  await report(two, { paths: path(one) });
  const at = `/api/networks/${network}`;
  const read = async (where: string) => (await plane.call('GET', `${at}${where}/traffic`, { token })).body.data;
  const own = await read(`/peers/${one.id}`);
  expect(PeerTraffic.parse(own)).toEqual(own);
  const sum = (rates: number[]) => rates.reduce((total, rate) => total + rate, 0);
  // The clock of the test begins with an interval, of which a minute is over.
  expect([sum(own.received), own.received.at(-1), own.sent.at(-1)]).toEqual([6000, 6000, 600]);
  const all = NetworkTraffic.parse(await read(''));
  expect(all.busiest).toEqual([{ peer: one.id, received: own.received, sent: own.sent }]);
  expect(all.total.received).toEqual(own.received);
  expect(sum((await read(`/peers/${two.id}`)).received)).toBe(0);
  await plane.call('DELETE', `${at}/peers/${one.id}`, { token });
  expect(NetworkTraffic.parse(await read('')).busiest).toEqual([]);
  expect((await plane.call('GET', `${at}/peers/${one.id}/traffic`, { token })).status).toBe(404);
  expect(await withDatabase(plane.dataDir, (db) => db.selectFrom('peer_traffic').selectAll().execute())).toEqual([]);
});
