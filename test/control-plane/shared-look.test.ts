import type { Kysely, KyselyPlugin } from 'kysely';
import { expect, test, vi } from 'vitest';
import type { PeerCaller } from '../../src/control-plane/caller.ts';
import { createNetworkTexts } from '../../src/control-plane/network-text.ts';
import { createAwaitNetwork } from '../../src/control-plane/service/await-network.ts';
import type { Context } from '../../src/control-plane/service/context.ts';
import type { Tables } from '../../src/control-plane/store/tables.ts';
import { Waiters } from '../../src/control-plane/waiters.ts';
import { enroll, startPlane, withDatabase } from './harness.ts';
import { makeOffice } from './waiting.ts';

/** Counts the statements that a database is asked for. */
function counting(db: Kysely<Tables>) {
  let count = 0;
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => {
      count += 1;
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  return { db: db.withPlugin(plugin), statements: () => count };
}

async function startOffice() {
  const plane = await startPlane();
  const token = await plane.signIn('owner');
  return { plane, ...(await makeOffice({ plane, token })) };
}

function callerOf(network: number, peer: number): PeerCaller {
  return { kind: 'peer', peerId: peer, name: '', networkId: network, organizationId: 1, address: '127.0.0.1' };
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
    const wait = { isKnown: (revision: number) => revision === 2, signal, isGone: () => false, recognize };
    const waiting = Array.from({ length: count }, () => awaitNetwork(callerOf(network, peer), network, wait));
    await vi.waitFor(() => expect(statements()).toBe(1));
    await enroll(plane, key);
    waiters.wake(network);
    for (const awaited of await Promise.all(waiting)) expect(awaited).toEqual({ revision: 3, isKnown: false });
    // The revision at first; then the revision and the list of peers.
    expect([statements(), recognize.mock.calls]).toEqual([3, []]);
  });
});

test('a text is read and written once for all who are told it, also later', async () => {
  const { plane, network, key } = await startOffice();
  await enroll(plane, key);
  await withDatabase(plane.dataDir, async (real) => {
    const { db, statements } = counting(real);
    const texts = createNetworkTexts({ db } as Context);
    const asking = { id: network, revision: 3 };
    const all = await Promise.all(
      Array.from({ length: 100 }, () => [texts.whole(asking), texts.delta(asking, 2)]).flat(),
    );
    const cost = statements();
    all.push(await texts.whole(asking), await texts.delta(asking, 2));
    expect([new Set(all.map((text) => text?.bytes)).size, statements() - cost]).toEqual([2, 0]);
    expect(JSON.parse(String((await texts.delta(asking, 2))?.bytes)).data).toMatchObject({ revision: 3, removed: [] });
    expect(await texts.delta(asking, 7)).toBeNull();
  });
});
