import type { Kysely, KyselyPlugin } from 'kysely';
import { expect, test, vi } from 'vitest';
import { type PeerCaller, peerOnly } from '../../../src/control-plane/domain/caller.ts';
import { ChangeNotifier } from '../../../src/control-plane/push/change-notifier.ts';
import { createLongPoll } from '../../../src/control-plane/push/long-poll.ts';
import { createMapCache } from '../../../src/control-plane/push/map-cache.ts';
import {
  createPeerReader,
  createSnapshots,
  nextLogicalTime,
  type ObservedRevision,
} from '../../../src/control-plane/push/snapshot.ts';
import type { Revision } from '../../../src/control-plane/store/changes.ts';
import { rememberedRevisions } from '../../../src/control-plane/store/changes.ts';
import { listTokenMarks } from '../../../src/control-plane/store/peers/peer-lists.ts';
import type { Tables } from '../../../src/control-plane/store/tables.ts';
import { enroll, makeKey, makeNetwork, publicKey, startPlane, withDatabase } from '../harness.ts';
import { withRows } from '../store/stored-rows.ts';
import { makeOffice } from './long-poll.ts';

/** Counts the statements that a database runs, and the rows that they return. */
function counting(db: Kysely<Tables>) {
  let count = 0;
  let rows = 0;
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => {
      count += 1;
      return node;
    },
    transformResult: async ({ result }) => {
      rows += result.rows.length;
      return result;
    },
  };
  return { db: db.withPlugin(plugin), statements: () => count, rows: () => rows };
}

/** Fills a network up to so many peers, all of one revision. */
async function fill(db: Kysely<Tables>, network: number, peers: number): Promise<void> {
  const row = await db.selectFrom('peers').selectAll().where('network_id', '=', network).executeTakeFirstOrThrow();
  const { id: _, ...common } = row;
  for (let host = 100; host < 100 + peers - 2; host += 1) {
    const own = {
      address: `10.77.1.${host}`,
      public_key: publicKey(),
      token_hash: `hash-${network}-${host}-`.padEnd(43, 'A'),
      label: null,
    };
    await db
      .insertInto('peers')
      .values({ ...common, ...own })
      .execute();
  }
}

/** A revision that is observed now. */
async function observe(db: Kysely<Tables>, network: number, revision: number): Promise<ObservedRevision> {
  const row = await db
    .selectFrom('changes')
    .select('nonce')
    .where('network_id', '=', network)
    .where('revision', '=', revision)
    .executeTakeFirst();
  return { revision, nonce: row?.nonce ?? 'later', at: nextLogicalTime() };
}

async function startOffice() {
  const plane = await startPlane();
  const token = await plane.signIn('owner');
  return { plane, ...(await makeOffice({ plane, token })) };
}

async function callerOf(db: Kysely<Tables>, network: number, peer: number): Promise<PeerCaller> {
  const marks = new Map(await listTokenMarks(db, network));
  const tokenMark = marks.get(peer) ?? 0;
  return {
    kind: 'peer',
    peerId: peer,
    name: '',
    networkId: network,
    organizationId: 1,
    tokenMark,
    expiresAt: null,
    awaitsApproval: false,
    access: peerOnly,
    address: '127.0.0.1',
  };
}

test.each([1, 10, 300])(
  'a change that wakes %i peers costs as many statements as one that wakes a single peer',
  async (count) => {
    const { plane, network, key, peer } = await startOffice();
    await withDatabase(plane.dataDir, async (real) => {
      const { db, statements } = counting(real);
      const notifier = new ChangeNotifier();
      const awaitNetwork = createLongPoll({ db, notifier });
      const authenticate = vi.fn(async () => expect.unreachable());
      const signal = new AbortController().signal;
      const request = {
        ...{ signal, authenticate },
        isCurrent: ({ revision }: Revision) => revision === 2,
        isDisconnected: () => false,
      };
      const caller = await callerOf(real, network, peer);
      const waiting = Array.from({ length: count }, () => awaitNetwork(caller, network, request));
      await vi.waitFor(() => expect(statements()).toBe(2), 20_000);
      await enroll(plane, key);
      notifier.notify(network);
      for (const awaited of await Promise.all(waiting))
        expect(awaited).toMatchObject({ revision: { revision: 3 }, isUnchanged: false });
      // At first the revision and the list of peers; then the revision, its change, and the peer of that change.
      expect([statements(), authenticate.mock.calls]).toEqual([5, []]);
    });
  },
);

test('a reply is read and serialized once for all clients, later ones included', async () => {
  const { plane, network, key } = await startOffice();
  await enroll(plane, key);
  await withDatabase(plane.dataDir, async (real) => {
    const { db, statements } = counting(real);
    const maps = createMapCache(db);
    const [two, three] = [await observe(real, network, 2), await observe(real, network, 3)];
    const wanted = { id: network, revision: three };
    const all = await Promise.all(
      Array.from({ length: 100 }, () => [maps.whole(wanted), maps.delta(wanted, two)]).flat(),
    );
    const cost = statements();
    all.push(await maps.whole(wanted), await maps.delta(wanted, two));
    expect([new Set(all.map((text) => text?.bytes)).size, statements() - cost]).toEqual([2, 0]);
    expect(JSON.parse(String((await maps.delta(wanted, two))?.bytes)).data).toMatchObject({
      revision: 3,
      removed: [],
    });
    const unknown = [
      { ...three, revision: 7 },
      { ...two, nonce: 'of another history' },
    ];
    for (const base of unknown) expect(await maps.delta(wanted, base)).toBeNull();
  });
});

test.each([2, 100])('the rows that a change costs do not grow with the %i peers of the network', async (peers) => {
  const { plane, network, key } = await startOffice();
  await enroll(plane, key);
  await withDatabase(plane.dataDir, async (real) => {
    await fill(real, network, peers);
    const { db, rows } = counting(real);
    const maps = createMapCache(db);
    const readSnapshot = createSnapshots(db);
    const countPeers = async () => [...(await (await readSnapshot(1, network)).peers())].length;
    const wholeOf = async (from: typeof maps, revision: number) =>
      JSON.parse(String((await from.whole({ id: network, revision: await observe(real, network, revision) })).bytes));
    const whole = (revision: number) => wholeOf(maps, revision);
    expect([(await whole(3)).data.peers.length, await countPeers()]).toEqual([peers, peers]);
    const before = rows();
    const { peer } = (await enroll(plane, key)).body.data;
    const { data } = await whole(4);
    expect([data.revision, data.peers.length, data.peers.at(-1), await countPeers()]).toEqual([
      4,
      peers + 1,
      peer,
      peers + 1,
    ]);
    // For the text: the network, the cached revision, the change, and its peer. For the snapshot: the same.
    expect(rows() - before).toBe(8);
    const fresh = await wholeOf(createMapCache(db), 4);
    expect(data).toEqual(fresh.data);
  });
});

test('the cached peers follow every kind of change, and more changes than are recorded', async () => {
  const plane = await startPlane();
  const token = await plane.signIn('owner');
  const { network, key, peer } = await makeOffice({ plane, token });
  await withDatabase(plane.dataDir, async (db) => {
    const readPeers = createPeerReader(db);
    const members = async (revision: number) => [
      ...(await readPeers(network, await observe(db, network, revision))).keys(),
    ];
    expect(await members(2)).toEqual([peer]);
    const second = (await enroll(plane, key)).body.data.peer.id;
    // A request that observed revision 2 may get the peers of revision 2.
    expect([await members(2), await members(3)]).toEqual([[peer], [peer, second]]);
    await plane.call('PATCH', `/api/networks/${network}`, { token, body: { name: 'moved' } });
    expect(await members(4)).toEqual([peer, second]);
    await plane.call('DELETE', `/api/networks/${network}/peers/${peer}`, { token });
    expect(await members(5)).toEqual([second]);
    const { revision } = await db.selectFrom('networks').select('revision').executeTakeFirstOrThrow();
    const forgotten = revision + rememberedRevisions + 1;
    await db.updateTable('networks').set({ revision: forgotten, nonce: 'later' }).execute();
    await db.deleteFrom('peers').where('id', '=', second).execute();
    expect(await members(forgotten)).toEqual([]);
  });
});

test('a network that is not requested leaves the full cache, and is read again', async () => {
  const plane = await startPlane();
  const token = await plane.signIn('owner');
  const { network, peer } = await makeOffice({ plane, token });
  const other = await makeNetwork(plane, token, { private_cidr: '10.78.0.0/24' });
  const { id } = (await enroll(plane, await makeKey(plane, token, other))).body.data.peer;
  await withDatabase(plane.dataDir, async (db) => {
    const readPeers = createPeerReader(db, 3);
    for (let time = 0; time < 3; time += 1) {
      expect(
        await Promise.all(
          [network, other].map(async (each) => [...(await readPeers(each, await observe(db, each, 2))).keys()]),
        ),
      ).toEqual([[peer], [id]]);
    }
  });
});

test('a network of one organization is none of another, also when both ask at once', () =>
  withRows(async ({ db, network, organization, addOrganization }) => {
    const readSnapshot = createSnapshots(db);
    const other = await addOrganization();
    const found = await Promise.all([organization, other, organization].map((each) => readSnapshot(each, network)));
    expect(found.map((each) => each.network?.id)).toEqual([network, undefined, network]);
    expect(found.map((each) => each.revision?.revision)).toEqual([1, undefined, 1]);
    // Those of one organization share a read.
    expect(found[0]).toBe(found[2]);
  }));
