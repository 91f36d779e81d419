import { expect, test } from 'vitest';
import type { PeerCaller } from '../../../src/control-plane/domain/caller.ts';
import { Presence } from '../../../src/control-plane/health/presence.ts';
import { eventually } from '../../lab/eventually.ts';
import { contextOver, makeFolder, quiet, startPlane, withDatabase } from '../harness.ts';
import { actions, type OfficePeer, silence, soon, startOffice } from './office.ts';

const readRows = (dataDir: string) =>
  withDatabase(dataDir, (db) => db.selectFrom('peer_health').selectAll().orderBy('peer_id').execute());
const readTraffic = (dataDir: string) =>
  withDatabase(dataDir, (db) => db.selectFrom('peer_traffic').selectAll().execute());

test('a request of a host is its presence, with version, platform and address', async () => {
  const { one, plane, call, health, events, untilState } = await startOffice();
  await call(one);
  await untilState(one, 'online');
  await eventually('it is announced', async () => (await events()).includes('peer.online one'));
  expect((await health()).peers.find(({ id }) => id === one.id)).toMatchObject({
    ...{ last_seen: plane.clock.now().toISOString(), version: '0.1.0', platform: 'linux x64' },
    source_address: '127.0.0.1',
  });
});

test('it is stored before anything is said of it', async () => {
  const { one, call, health } = await startOffice({ healthTimes: { ...soon, flushMs: 10_000, settleMs: 500 } });
  await call(one);
  const states = new Set<unknown>();
  await eventually('it is online', async () => {
    const { state, last_seen } = (await health()).peers.find(({ id }) => id === one.id) ?? {};
    states.add(`${state} ${last_seen === null ? 'never seen' : 'seen'}`);
    return states.has('online seen');
  });
  expect([...states]).not.toContain('online never seen');
});

test.each([
  ['curl/8.1', null, null],
  ['cpn/1.2.3', '1.2.3', null],
  [`cpn/${'9'.repeat(100)} (${'x'.repeat(100)})`, '9'.repeat(64), 'x'.repeat(64)],
  ['cpn/1\u00e9 (li\u00e9nux)', '1', null],
])('the user agent %j has the version %j and the platform %j', async (agent, version, platform) => {
  const { one, call, health, untilState } = await startOffice();
  await call(one, agent);
  await untilState(one, 'online');
  const found = (await health()).peers.find(({ id }) => id === one.id);
  expect([found?.version, found?.platform]).toEqual([version, platform]);
});

test('it is written once a minute, and the latest request at the next minute', async () => {
  const { one, plane, call, events } = await startOffice();
  const lastSeen = async () => (await readRows(plane.dataDir)).find(({ peer_id }) => peer_id === one.id)?.last_seen;
  await call(one);
  await eventually('it is announced', async () => (await events()).includes('peer.online one'));
  const first = await lastSeen();
  plane.clock.advance(20_000 - ((plane.clock.now().getTime() + one.id * 1000) % 60_000));
  await call(one);
  const latest = plane.clock.now().toISOString();
  plane.clock.advance(10_000);
  await new Promise((resolve) => setTimeout(resolve, 4 * soon.flushMs));
  expect(await lastSeen()).toBe(first);
  plane.clock.advance(60_000);
  await eventually('the latest is written', async () => (await lastSeen()) === latest);
});

test('it outlives a restart, and a restart is no false alarm', async () => {
  const dataDir = makeFolder();
  const office = await startOffice({ dataDir });
  const { one, two, plane, network, token } = office;
  await office.call(one);
  await office.call(two);
  await eventually('both are announced', async () => (await office.events()).length === 2);
  const before = plane.clock.now();
  await plane.server.close();
  let at = new Date(before.getTime() + 10 * silence);
  const again = await startPlane({ dataDir, healthTimes: soon, now: () => at });
  const after = actions(again, network, token);
  const seen = (await after.health()).peers.find(({ id }) => id === one.id);
  expect(seen).toMatchObject({ state: 'online', last_seen: before.toISOString(), version: '0.1.0' });
  at = new Date(at.getTime() + 80_000);
  await after.call(two);
  await new Promise((resolve) => setTimeout(resolve, 4 * soon.tickMs));
  expect((await after.events()).filter((event) => event.startsWith('peer.off'))).toEqual([]);
  at = new Date(at.getTime() + 20_000);
  // Only now it had the time for a request.
  await eventually('the other is offline', async () => (await after.events()).includes('peer.offline one'));
  expect(await after.events()).not.toContain('peer.offline two');
});

test('with 0 days nothing is kept but that a host is online', async () => {
  const { one, two, plane, call, report, health, events } = await startOffice({ presenceDays: 0 });
  await call(two);
  await call(one);
  await report(one, { paths: [{ peer: two.id, path: 'direct', rx_rate: 5000 }] });
  plane.clock.advance(1000);
  await report(one, {});
  expect(await readTraffic(plane.dataDir)).toEqual([]);
  await eventually('both are announced', async () => (await events()).length === 2);
  expect((await health()).peers[0]).toMatchObject({
    ...{ state: 'online', last_seen: null, version: null, platform: null, source_address: null, reported_at: null },
  });
  plane.clock.advance(silence - 40_000);
  await call(two);
  plane.clock.advance(40_000);
  await eventually('one is offline', async () => (await events()).includes('peer.offline one'));
  const row = async () => (await readRows(plane.dataDir)).find(({ peer_id }) => peer_id === one.id);
  await eventually('what was kept of it is forgotten', async () => (await row())?.last_seen === null);
  expect(await row()).toMatchObject({
    ...{ last_seen: null, version: null, platform: null, address: null, report: null, reported_at: null },
    announced: 'offline',
  });
});

test('what is older than its days is forgotten', async () => {
  const { one, two, plane, call, events, report } = await startOffice({ presenceDays: 1 });
  await call(one);
  await report(one, { drift: 1, paths: [{ peer: two.id, path: 'direct', rx_rate: 5000 }] });
  plane.clock.advance(1000);
  await report(one, {});
  expect((await readTraffic(plane.dataDir)).map(({ peer_id }) => peer_id)).toEqual([one.id]);
  await eventually('both are announced', async () => (await events()).length === 2);
  plane.clock.advance(25 * 3600 * 1000);
  await call(two);
  const row = async () => (await readRows(plane.dataDir)).find(({ peer_id }) => peer_id === one.id);
  await eventually('it is forgotten', async () => (await row())?.last_seen === null);
  expect(await row()).toMatchObject({ version: null, address: null, report: null });
  await eventually('its traffic too', async () => (await readTraffic(plane.dataDir)).length === 0);
});

test('requests of a host do not move the revision of the network', async () => {
  const { one, call, events } = await startOffice();
  const first = (await call(one)).headers.get('etag');
  await eventually('it is announced', async () => (await events()).length === 1);
  expect((await call(one)).headers.get('etag')).toBe(first);
});

test('a peer that was silent here is announced at once, because another process may have stated that it is offline', async () => {
  const { one, plane, network } = await startOffice({ healthTimes: quiet });
  await withDatabase(plane.dataDir, async (db) => {
    const returned: number[] = [];
    const presence = new Presence(contextOver(db, plane), {
      ...{ days: 1, flushMs: 60_000, settleMs: 1, failures: { note: () => {} } },
      onReturn: (id) => void returned.push(id),
    });
    const touch = ({ id }: OfficePeer) =>
      presence.touch({ peerId: id, networkId: network, address: '203.0.113.1' } as PeerCaller, {});
    touch(one);
    await eventually('it is announced', () => returned.length === 1);
    presence.setOnline(one.id, true);
    plane.clock.advance(silence - 2000);
    touch(one);
    await presence.flush();
    plane.clock.advance(silence);
    touch(one);
    await eventually('it is announced again', () => returned.length === 2);
    await presence.stop();
    expect(returned).toEqual([network, network]);
  });
});
