import type { Kysely, KyselyPlugin } from 'kysely';
import { expect, test, vi } from 'vitest';
import type { PeerCaller } from '../../src/control-plane/caller.ts';
import { createNetworkTexts } from '../../src/control-plane/network-text.ts';
import { nextMoment, type Seen } from '../../src/control-plane/seen.ts';
import { createAwaitNetwork } from '../../src/control-plane/service/await-network.ts';
import type { Context } from '../../src/control-plane/service/context.ts';
import { createLooks } from '../../src/control-plane/service/look.ts';
import { listPeerMarks } from '../../src/control-plane/store/peers.ts';
import type { Revision } from '../../src/control-plane/store/revision.ts';
import type { Tables } from '../../src/control-plane/store/tables.ts';
import { Waiters } from '../../src/control-plane/waiters.ts';
import { enroll, publicKey, startPlane, withDatabase } from './harness.ts';
import { makeOffice } from './waiting.ts';

/** Counts the statements that a database is asked for, and the rows that it gives. */
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

/** A revision as it is seen now. */
async function seenOf(db: Kysely<Tables>, network: number, revision: number): Promise<Seen> {
  const row = await db
    .selectFrom('changes')
    .select('nonce')
    .where('network_id', '=', network)
    .where('revision', '=', revision)
    .executeTakeFirstOrThrow();
  return { revision, nonce: row.nonce ?? '', at: nextMoment() };
}

async function startOffice() {
  const plane = await startPlane();
  const token = await plane.signIn('owner');
  return { plane, ...(await makeOffice({ plane, token })) };
}

async function callerOf(db: Kysely<Tables>, network: number, peer: number): Promise<PeerCaller> {
  const marks = new Map(await listPeerMarks(db, network));
  const tokenMark = marks.get(peer) ?? 0;
  return {
    kind: 'peer',
    peerId: peer,
    name: '',
    networkId: network,
    organizationId: 1,
    tokenMark,
    address: '127.0.0.1',
  };
}

test.each([1, 10, 300])('%i peers that are woken together cost the database no more than one', async (count) => {
  const { plane, network, key, peer } = await startOffice();
  await withDatabase(plane.dataDir, async (real) => {
    const { db, statements } = counting(real);
    const waiters = new Waiters();
    const context = { db, waiters, now: plane.clock.now } as Context;
    const awaitNetwork = createAwaitNetwork(context);
    const recognize = vi.fn(async () => expect.unreachable());
    const signal = new AbortController().signal;
    const wait = { isKnown: ({ revision }: Revision) => revision === 2, signal, isGone: () => false, recognize };
    const caller = await callerOf(real, network, peer);
    const waiting = Array.from({ length: count }, () => awaitNetwork(caller, network, wait));
    await vi.waitFor(() => expect(statements()).toBe(2));
    await enroll(plane, key);
    waiters.wake(network);
    for (const awaited of await Promise.all(waiting))
      expect(awaited).toMatchObject({ revision: { revision: 3 }, isKnown: false });
    // The revision and the list of peers at first; then the revision, what it is about, and whether that peer is there.
    expect([statements(), recognize.mock.calls]).toEqual([5, []]);
  });
});

test('a text is read and written once for all who are told it, also later', async () => {
  const { plane, network, key } = await startOffice();
  await enroll(plane, key);
  await withDatabase(plane.dataDir, async (real) => {
    const { db, statements } = counting(real);
    const texts = createNetworkTexts({ db } as Context);
    const [two, three] = [await seenOf(real, network, 2), await seenOf(real, network, 3)];
    const asking = { id: network, revision: three };
    const all = await Promise.all(
      Array.from({ length: 100 }, () => [texts.whole(asking), texts.delta(asking, two)]).flat(),
    );
    const cost = statements();
    all.push(await texts.whole(asking), await texts.delta(asking, two));
    expect([new Set(all.map((text) => text?.bytes)).size, statements() - cost]).toEqual([2, 0]);
    expect(JSON.parse(String((await texts.delta(asking, two))?.bytes)).data).toMatchObject({
      revision: 3,
      removed: [],
    });
    const strangers = [
      { ...three, revision: 7 },
      { ...two, nonce: 'of another history' },
    ];
    for (const base of strangers) expect(await texts.delta(asking, base)).toBeNull();
  });
});

test.each([2, 100])('what it costs to know a network after a change does not grow with its %i peers', async (peers) => {
  const { plane, network, key } = await startOffice();
  await enroll(plane, key);
  await withDatabase(plane.dataDir, async (real) => {
    await fill(real, network, peers);
    const { db, rows } = counting(real);
    const texts = createNetworkTexts({ db } as Context);
    const lookAt = createLooks({ db } as Context);
    const look = async () => [...(await (await lookAt(1, network)).peers())].length;
    const wholeOf = async (from: typeof texts, revision: number) =>
      JSON.parse(String((await from.whole({ id: network, revision: await seenOf(real, network, revision) })).bytes));
    const whole = (revision: number) => wholeOf(texts, revision);
    expect([(await whole(3)).data.peers.length, await look()]).toEqual([peers, peers]);
    const before = rows();
    const { peer } = (await enroll(plane, key)).body.data;
    const { data } = await whole(4);
    expect([data.revision, data.peers.length, data.peers.at(-1), await look()]).toEqual([
      4,
      peers + 1,
      peer,
      peers + 1,
    ]);
    // Of the text: the network, the revision that was known, the change, and its peer; of the look: the same.
    expect(rows() - before).toBe(8);
    const fresh = await wholeOf(createNetworkTexts({ db } as Context), 4);
    expect(data).toEqual(fresh.data);
  });
});
