import { describe, expect, test } from 'vitest';
import type { Db } from '../../../src/control-plane/store/tables.ts';
import { eventually } from '../../lab/eventually.ts';
import { postgres } from '../databases.ts';
import { enroll, makeFolder, makeKey, startPlane, withDatabase } from '../harness.ts';
import { actions, type Office, type OfficePeer, outlast, soon, startOffice } from './office.ts';

/** Two connectors, of which the first is the relay, and a host; all are online. */
async function startRelayed(options: Parameters<typeof startOffice>[0] = {}) {
  const office = await startOffice(options);
  const { plane, token, network, one, two, three } = office;
  for (const [index, { id }] of [two, three].entries()) {
    const body = { endpoint: `203.0.113.${index + 1}:51820` };
    await plane.call('PATCH', `/api/networks/${network}/peers/${id}`, { token, body });
  }
  for (const peer of [one, two, three]) await office.call(peer);
  await eventually('all are online', async () => (await online(office)) === 3);
  const read = async () => (await plane.call('GET', `/api/networks/${network}`, { token })).body.data;
  const relay = async () => (await read()).relay;
  expect(await relay()).toBe(two.id);
  const changes = async () => {
    const { body } = await plane.call('GET', `/api/networks/${network}/events?after=0`, { token });
    return body.data.filter(({ type }: { type: string }) => type === 'relay.changed').slice(1);
  };
  return { ...office, read, relay, changes };
}

const online = async ({ events }: Pick<Office, 'events'>) =>
  (await events()).filter((event) => event.startsWith('peer.online')).length;
const direct = ({ id }: OfficePeer) => ({ peer: id, path: 'direct' });

describe('the relay', () => {
  test('that dies is replaced by a connector that is online, once, and stays replaced as it returns', async () => {
    const office = await startRelayed();
    const { one, two, three, call, events, relay, changes, health } = office;
    await outlast(office, () => [call(one), call(three)]);
    await eventually('the relay changed', async () => (await relay()) === three.id);
    expect((await changes()).map(({ details }: { details: object }) => details)).toEqual([
      { from: { id: two.id, name: 'two' }, to: { id: three.id, name: 'three' }, why: 'two is offline' },
    ]);
    expect((await health()).relay).toBe(three.id);
    await call(two);
    await eventually('it is back', async () => (await events()).at(-1) === 'peer.online two');
    expect([await relay(), (await changes()).length]).toEqual([three.id, 1]);
  });

  test('that lost the control plane stays while hosts reach it', async () => {
    const office = await startRelayed();
    const { one, two, three, call, report, untilState, relay, health } = office;
    await report(one, { paths: [direct(two)] });
    await outlast(office, () => [call(one), call(three)]);
    await report(one, { paths: [direct(two), direct(three)] });
    await untilState(two, 'online');
    expect((await health()).peers.find(({ id }) => id === two.id)?.why).toMatch(
      /^not seen for .* 1 of 1 host reaches it$/,
    );
    expect(await relay()).toBe(two.id);
  });

  test('stays while all hosts are silent, and after they return', async () => {
    const office = await startRelayed();
    const { one, two, three, plane, call, untilState, relay, read } = office;
    const { revision } = await read();
    plane.clock.advance(300_000);
    await untilState(two, 'unknown');
    for (const peer of [three, one, two]) await call(peer);
    await untilState(two, 'online');
    expect([await relay(), (await read()).revision]).toEqual([two.id, revision]);
  });

  test('stays if no other connector is online, and is replaced by the first that is', async () => {
    const office = await startRelayed();
    const { one, two, three, call, report, events, relay } = office;
    await outlast(office, () => [call(one)]);
    await report(one, { paths: [two, three].map(({ id }) => ({ peer: id, path: 'down' })) });
    for (const name of ['two', 'three'])
      await eventually(`${name} is offline`, async () => (await events()).includes(`peer.offline ${name}`));
    expect(await relay()).toBe(two.id);
    await call(three);
    await eventually('the relay changed', async () => (await relay()) === three.id);
  });

  test('stays through a restart of the control plane, and through a clock that is set', async () => {
    const dataDir = makeFolder();
    const office = await startRelayed({ dataDir });
    const { one, two, three, plane, token, network } = office;
    const { revision } = await office.read();
    await plane.server.close();
    for (const ahead of [3_600_000, -3_600_000]) {
      const at = new Date(plane.clock.now().getTime() + ahead);
      const later = await startPlane({ dataDir, healthTimes: soon, now: () => at });
      const there = actions(later, network, token);
      // Only the other connector returns.
      await there.call(three);
      await there.report(three, { paths: [{ peer: one.id, path: 'direct' }], drift: ahead });
      await eventually('it was judged', async () => (await there.stateOf(three)) === 'online');
      const { data } = (await later.call('GET', `/api/networks/${network}`, { token })).body;
      expect([data.relay, data.revision]).toEqual([two.id, revision]);
      await later.server.close();
    }
  });

  test('of a network of an earlier version is named with the next evaluation', async () => {
    const { plane, network, one, report, two, read, changes } = await startRelayed();
    const { revision } = await read();
    await withDatabase(plane.dataDir, (db) =>
      db.updateTable('networks').set({ relay: null }).where('id', '=', network).execute(),
    );
    await report(one, { paths: [direct(two)] });
    await eventually('the network has a relay', async () => (await changes()).length === 1);
    expect(await read()).toMatchObject({ relay: two.id, revision: revision + 1 });
  });
});

describe('a host that reports that it uses the relay', () => {
  const followers = async ({ read }: Pick<Awaited<ReturnType<typeof startRelayed>>, 'read'>): Promise<number[]> => {
    const { peers } = await read();
    return peers.flatMap(({ id, follows_relay }: { id: number; follows_relay?: boolean }) => (follows_relay ? id : []));
  };

  test('is marked in the map with one revision, until a report without it', async () => {
    const office = await startRelayed();
    const { one, report, read } = office;
    const { revision } = await read();
    expect(await followers(office)).toEqual([]);
    await report(one, { follows_relay: true });
    await eventually('it is marked', async () => (await followers(office)).join() === `${one.id}`);
    await report(one, { follows_relay: true, drift: 1 });
    await report(one, { drift: 2, follows_relay: true, paths: [] });
    expect((await read()).revision).toBe(revision + 1);
    await report(one, { drift: 3 });
    await eventually('it is not marked', async () => (await followers(office)).length === 0);
    expect((await read()).revision).toBe(revision + 2);
  });

  test('keeps its mark as the relay dies; one that is offline loses it, and has it again by its next report', async () => {
    const office = await startRelayed();
    const { one, two, three, plane, token, network, call, report, relay } = office;
    const key = await makeKey(plane, token, network);
    const { body } = await enroll(plane, key, { name: 'four' });
    const four: OfficePeer = { id: body.data.peer.id, name: 'four', token: body.data.access_token };
    await call(four);
    await eventually('four is online', async () => (await office.events()).includes('peer.online four'));
    for (const peer of [one, four]) await report(peer, { follows_relay: true });
    await eventually('both are marked', async () => (await followers(office)).length === 2);
    await outlast(office, () => [call(one), call(three)]);
    await eventually('the relay changed', async () => (await relay()) === three.id);
    expect(await followers(office)).toEqual([one.id]);
    for (const peer of [four, two]) await call(peer);
    await report(four, { follows_relay: true });
    await eventually('it is marked again', async () => (await followers(office)).join() === `${one.id},${four.id}`);
  });

  test('again and again is marked thirty times, then once a minute, and its reports are accepted', async () => {
    const { one, plane, report } = await startRelayed();
    const isStored = async () => {
      const query = (db: Db) => db.selectFrom('peer_health').select('follows_relay').where('peer_id', '=', one.id);
      const row = await withDatabase(plane.dataDir, (db) => query(db).executeTakeFirstOrThrow());
      return row.follows_relay === 1;
    };
    let marks = 0;
    for (let count = 0; count < 36; count += 1) {
      for (const follows_relay of [true, false]) {
        plane.clock.advance(2_000);
        expect((await report(one, { follows_relay })).status).toBe(200);
        const isMarked = await isStored();
        expect(isMarked && !follows_relay).toBe(false);
        marks += Number(isMarked);
      }
    }
    expect(marks).toBe(32);
  });
});

test('a host that reports that it enforces rules is marked in the map, until a report without it', async () => {
  const { one, report, read } = await startRelayed();
  const marked = async () => {
    const { peers } = await read();
    return peers.flatMap(({ id, enforces_rules }: { id: number; enforces_rules?: true }) => (enforces_rules ? id : []));
  };
  const { revision } = await read();
  await report(one, { enforces_rules: true, follows_relay: true });
  await eventually('it is marked', async () => (await marked()).join() === `${one.id}`);
  await report(one, { enforces_rules: true, follows_relay: true, drift: 1 });
  expect((await read()).revision).toBe(revision + 1);
  await report(one, { follows_relay: true });
  await eventually('it is not marked', async () => (await marked()).length === 0);
  expect((await read()).peers.find(({ id }: OfficePeer) => id === one.id)).toMatchObject({ follows_relay: true });
});

test.runIf(postgres)('of two replicas one names the next relay', async () => {
  const dataDir = makeFolder();
  const office = await startRelayed({ dataDir });
  const { one, three, plane, network, token, call, relay, changes, events } = office;
  const other = await startPlane({ dataDir, healthTimes: soon, now: plane.clock.now });
  const there = actions(other, network, token);
  await outlast(office, () => [there.call(one), call(three)]);
  await eventually('the relay changed', async () => (await relay()) === three.id);
  await eventually('it is offline', async () => (await events()).includes('peer.offline two'));
  expect(await changes()).toHaveLength(1);
});
