import { expect, test } from 'vitest';
import {
  countAnnounced,
  listLost,
  listNetworksToJudge,
  prunePresence,
} from '../../../src/control-plane/store/health.ts';
import { findLastRemoval, listPending, saveAcknowledged } from '../../../src/control-plane/store/removals.ts';
import { listTraffic, pruneTraffic, saveTraffic } from '../../../src/control-plane/store/traffic.ts';
import { ago, day, withRows } from './stored-rows.ts';

const second = 1000;
const since = ago(90 * second);
const unlisted = [{ suspended_at: ago(day) }, { expired: 1, expires_at: ago(second) }] as const;

test('a network is judged where the last event of a peer in its map contradicts its requests, or its lost connection', () =>
  withRows(async ({ db, addNetwork, addPeer }) => {
    const [seen, silent, atLimit] = [ago(second), ago(91 * second), since];
    const [lost, found] = [
      { last_seen: seen, lost_at: ago(0) },
      { last_seen: seen, lost_at: ago(2 * second) },
    ];
    const cases = [
      [{ announced: 'online', last_seen: seen }, false],
      [{ announced: 'online', last_seen: silent }, true],
      [{ announced: 'online', last_seen: atLimit }, false],
      [{ announced: 'online', last_seen: null }, false],
      [{ announced: 'online', ...lost }, true],
      [{ announced: 'online', last_seen: seen, lost_at: seen }, true],
      [{ announced: 'online', last_seen: null, lost_at: seen }, true],
      [{ announced: 'online', ...found }, false],
      [{ announced: 'offline', last_seen: seen }, true],
      [{ announced: 'offline', last_seen: atLimit }, true],
      [{ announced: 'offline', last_seen: silent }, false],
      [{ announced: 'offline', ...lost }, false],
      [{ announced: 'offline', ...found }, true],
      [{ announced: null, last_seen: seen }, true],
      [{ announced: null, last_seen: silent }, false],
      [{ announced: null, last_seen: null, report: '{}' }, false],
    ] as const;
    const networks: number[] = [];
    for (const [health] of cases) {
      const network_id = await addNetwork();
      networks.push(network_id);
      await addPeer({ network_id }, health);
      // What others of the network did is no contradiction.
      await addPeer({ network_id }, { announced: 'online', last_seen: seen });
      for (const fields of unlisted) await addPeer({ network_id, ...fields }, { announced: null, last_seen: seen });
    }
    const judged = await listNetworksToJudge(db, since);
    expect(cases.map(([health], at) => [health, judged.includes(networks[at] ?? 0)])).toEqual(cases);
    expect(new Set(judged).size).toBe(judged.length);
  }));

test('a lost host is one that is stated online and made no stored request since, in its own network', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    const lost_at = ago(5 * second);
    const online = { announced: 'online', lost_at } as const;
    const lost = [
      await addPeer({}, { ...online, last_seen: null }),
      await addPeer({}, { ...online, last_seen: ago(6 * second) }),
      await addPeer({}, { ...online, last_seen: lost_at }),
    ];
    await addPeer({}, { ...online, last_seen: ago(4 * second) });
    await addPeer({}, { announced: 'online', last_seen: ago(second) });
    for (const announced of ['offline', null] as const) await addPeer({}, { announced, lost_at });
    await addPeer({ network_id: await addNetwork() }, online);
    const found = await listLost(db, network);
    expect(found.toSorted((a, b) => a.peer_id - b.peer_id)).toEqual(lost.map((peer_id) => ({ peer_id, lost_at })));
  }));

test.each([true, false])(
  'presence is forgotten after its days, and where none is kept (%s) but for what an online host needs',
  (isKept) =>
    withRows(async ({ db, addPeer }) => {
      const facts = { version: '1', platform: 'linux', address: '192.0.2.1', instances: '{}' };
      const [old, recent] = [ago(30 * day + 1), ago(30 * day)];
      const kept = { announced: 'online', last_seen: recent, report: '{}', reported_at: recent, ...facts } as const;
      const rows = [
        kept,
        { ...kept, last_seen: old },
        { ...kept, reported_at: old },
        { ...kept, announced: 'offline' },
        { ...kept, announced: null },
      ] as const;
      const ids: number[] = [];
      for (const row of rows) ids.push(await addPeer({}, row));
      await prunePresence(db, isKept ? recent : null);
      const noFacts = { version: null, platform: null, address: null, instances: null };
      const noReport = { report: null, reported_at: null };
      const expected = isKept
        ? [rows[0], { ...rows[1], last_seen: null, ...noFacts }, { ...rows[2], ...noReport }, rows[3], rows[4]]
        : [
            ...[rows[0], rows[1], rows[2]].map((row) => ({ ...row, ...noFacts })),
            ...[rows[3], rows[4]].map((row) => ({ ...row, last_seen: null, ...noReport, ...noFacts })),
          ];
      const left = await db.selectFrom('peer_health').selectAll().orderBy('peer_id').execute();
      expect(left).toMatchObject(expected.map((row, at) => ({ peer_id: ids[at], ...row })));
    }),
);

test('the hosts that have not applied a removal are those of the map that made a request, or acknowledged before', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    const [seen, reported] = [{ last_seen: ago(second) }, { reported_at: ago(2 * second) }];
    const pending = [
      [await addPeer({}, seen), null, ago(second)],
      [await addPeer({}, reported), null, ago(2 * second)],
      [await addPeer({}, { ...seen, ...reported, acknowledged_revision: 6 }), 6, ago(second)],
      [await addPeer({}, { acknowledged_revision: 5 }), 5, null],
    ];
    await addPeer();
    await addPeer({}, { announced: 'online' });
    for (const acknowledged_revision of [7, 8]) await addPeer({}, { ...seen, acknowledged_revision });
    for (const fields of unlisted) await addPeer(fields, seen);
    await addPeer({ network_id: await addNetwork() }, seen);
    const listed = await listPending(db, network, 7);
    expect(listed.map(({ id, acknowledged_revision, last_seen }) => [id, acknowledged_revision, last_seen])).toEqual(
      pending,
    );
  }));

test('an acknowledgement is stored of a first or a later revision, and of no peer that was removed', () =>
  withRows(async ({ db, addPeer }) => {
    const [none, unseen, early, late] = [
      await addPeer(),
      await addPeer({}, { last_seen: ago(second) }),
      await addPeer({}, { acknowledged_revision: 4 }),
      await addPeer({}, { acknowledged_revision: 6 }),
    ];
    for (const peer of [none, unseen, early, late, 9_999]) await saveAcknowledged(db, peer, 5);
    const rows = await db
      .selectFrom('peer_health')
      .select(['peer_id', 'acknowledged_revision'])
      .orderBy('peer_id')
      .execute();
    expect(rows.map((row) => [row.peer_id, row.acknowledged_revision])).toEqual([
      [none, 5],
      [unseen, 5],
      [early, 5],
      [late, 6],
    ]);
  }));

test('the last removal is the last change of a peer that is not in the map, in its own network', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    const change = (revision: number, peer_id: number | null, network_id = network) =>
      db.insertInto('changes').values({ network_id, revision, peer_id, nonce: 'n' }).execute();
    const lastRemoval = () => findLastRemoval(db, network);
    await change(2, await addPeer());
    await change(3, null);
    await change(99, 9_999, await addNetwork());
    expect(await lastRemoval()).toBeNull();
    for (const [at, peer] of [
      [4, 9_999],
      [6, await addPeer(unlisted[0])],
      [8, await addPeer(unlisted[1])],
    ] as const) {
      await change(at, peer);
      await change(at + 1, await addPeer());
      expect(await lastRemoval()).toBe(at);
    }
  }));

test('hosts are counted by the state of their last event', () =>
  withRows(async ({ db, addPeer }) => {
    for (const announced of ['online', 'online', 'offline', null] as const)
      await addPeer({}, { announced, version: '1' });
    expect(Object.fromEntries(await countAnnounced(db))).toEqual({ online: 2, offline: 1 });
  }));

test('traffic is that of peers in the map, and is forgotten by the time of its last report', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    const [old, recent] = [await addPeer(), await addPeer()];
    for (const fields of unlisted) await saveTraffic(db, await addPeer(fields), '[]', ago(0));
    await saveTraffic(db, await addPeer({ network_id: await addNetwork() }), '[]', ago(0));
    await saveTraffic(db, old, '[1]', ago(day + 1));
    await saveTraffic(db, recent, '[1]', ago(day + 1));
    await saveTraffic(db, recent, '[2]', ago(day));
    await saveTraffic(db, 9_999, '[3]', ago(0));
    const listed = async () => (await listTraffic(db, network)).map(({ peer_id, history }) => [peer_id, history]);
    expect((await listed()).toSorted()).toEqual([
      [old, '[1]'],
      [recent, '[2]'],
    ]);
    await pruneTraffic(db, ago(day));
    expect(await listed()).toEqual([[recent, '[2]']]);
    await pruneTraffic(db, null);
    expect(await listed()).toEqual([]);
  }));
