import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { observeInstances } from '../../../src/control-plane/health/observe-instances.ts';
import { ChangeNotifier } from '../../../src/control-plane/push/change-notifier.ts';
import type { Context } from '../../../src/control-plane/service/context.ts';
import { eventually } from '../../lab/eventually.ts';
import { postgres } from '../databases.ts';
import { type Plane, startPlane, withDatabase } from '../harness.ts';
import { now, readTime, withRows } from '../store/stored-rows.ts';
import { type Office, type OfficePeer, soon, startOffice } from './office.ts';

const [a, b, c] = ['a'.repeat(16), 'b'.repeat(16), 'c'.repeat(16)];

/** A request for the map by a start of a peer's daemon, once it is stored; the value of Peer-Cloned-Since. */
async function ask({ plane, network }: Office, peer: OfficePeer, instance: string, at: Pick<Plane, 'call'> = plane) {
  plane.clock.advance(61_000);
  const headers = { 'user-agent': 'cpn/0.1.0 (linux x64)', 'peer-instance': instance };
  const { headers: replied } = await at.call('GET', `/api/networks/${network}`, { token: peer.token, headers });
  const now = plane.clock.now().toISOString();
  await eventually('the request is stored', async () => {
    const rows = await withDatabase(plane.dataDir, (db) => db.selectFrom('peer_health').selectAll().execute());
    const row = rows.find(({ peer_id }) => peer_id === peer.id);
    return row?.last_seen === now && (instance.length !== 16 || (row.instances ?? '').includes(instance));
  });
  // The starts are stored after presence.
  await new Promise((resolve) => setTimeout(resolve, 3 * soon.flushMs));
  return replied.get('peer-cloned-since');
}

const clones = async ({ events }: Office) => (await events()).filter((event) => event.startsWith('peer.cloned'));

test('restarts of a host are no clone', async () => {
  const office = await startOffice();
  for (const instance of [a, b, c, c]) expect(await ask(office, office.one, instance)).toBeNull();
  expect(await clones(office)).toEqual([]);
});

test('a start that comes back is a clone: one event with the addresses, and both hosts read it with the map', async () => {
  const office = await startOffice();
  for (const instance of [a, b]) expect(await ask(office, office.one, instance)).toBeNull();
  for (let round = 0; round < 3; round += 1) for (const instance of [a, b]) await ask(office, office.one, instance);
  expect(await clones(office)).toEqual(['peer.cloned one']);
  const since = await ask(office, office.one, a);
  expect(Date.parse(since ?? '')).toBeGreaterThan(0);
  const { body } = await office.plane.call('GET', `/api/networks/${office.network}/events?after=0&limit=1000`, {
    token: office.token,
  });
  expect(body.data.find(({ type }: { type: string }) => type === 'peer.cloned')).toMatchObject({
    peer: { id: office.one.id, name: 'one' },
    details: { addresses: ['127.0.0.1'] },
  });
  // Neither another host, nor the revision of the network.
  expect(await ask(office, office.two, c)).toBeNull();
  // The copy is gone.
  office.plane.clock.advance(600_000);
  await ask(office, office.one, a);
  expect(await ask(office, office.one, a)).toBeNull();
});

test('starts that alternate between two writes are a clone: one event, of which readers are notified', () =>
  withRows(async ({ db, network, addPeer }) => {
    const peer = await addPeer({ name: 'one' });
    const healthNotifier = new ChangeNotifier();
    const notified: number[] = [];
    healthNotifier.subscribe((changed) => notified.push(changed));
    const context = {
      db,
      readTime,
      random: randomBytes,
      announce: async () => {},
      webhookTypes: new Set(),
      healthNotifier,
    };
    const instances = [a, b, a, b].map((id, at) => ({
      ...{ id, since: now - 240_000 + 60_000 * at },
      address: id === a ? '192.0.2.1' : '192.0.2.2',
    }));
    const observe = () =>
      observeInstances(context as unknown as Context, [{ peer, network, instances: instances.splice(0) }], now);
    expect((await observe()).get(peer)).toBe(now - 120_000);
    const events = await db.selectFrom('events').select(['type', 'peer_id', 'peer_name', 'details']).execute();
    expect(events).toEqual([
      { type: 'peer.cloned', peer_id: peer, peer_name: 'one', details: '{"addresses":["192.0.2.2","192.0.2.1"]}' },
    ]);
    expect(notified).toEqual([network]);
  }));

test('a header that is no such id, and a command without one, change nothing', async () => {
  const office = await startOffice();
  for (const instance of [a, 'x', '', a, "a'; drop table peers", a]) await ask(office, office.one, instance);
  expect(await clones(office)).toEqual([]);
});

test('nothing of addresses is kept where no presence is', async () => {
  const office = await startOffice({ presenceDays: 0 });
  for (const instance of [a, b, a]) await ask(office, office.one, instance);
  expect(await clones(office)).toEqual(['peer.cloned one']);
  const rows = await withDatabase(office.plane.dataDir, (db) => db.selectFrom('peer_health').selectAll().execute());
  expect(JSON.stringify(rows)).not.toContain('127.0.0.1');
});

test.runIf(postgres)('hosts that call different replicas are found, and one replica states it', async () => {
  const office = await startOffice();
  const { plane, one } = office;
  const other = await startPlane({ dataDir: plane.dataDir, healthTimes: soon });
  other.clock.advance(plane.clock.now().getTime() - other.clock.now().getTime());
  const at = async (instance: string, replica: Plane) => {
    other.clock.advance(61_000);
    return ask(office, one, instance, replica);
  };
  for (const [instance, replica] of [
    [a, plane],
    [b, other],
    [a, plane],
    [b, other],
    [a, plane],
    [b, other],
  ] as const) {
    await at(instance, replica);
  }
  expect(await clones(office)).toEqual(['peer.cloned one']);
  expect(await at(a, plane)).not.toBeNull();
  expect(await at(b, other)).not.toBeNull();
});
