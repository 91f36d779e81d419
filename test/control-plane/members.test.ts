import { expect, test } from 'vitest';
import { KnownPeers } from '../../src/control-plane/known-peers.ts';
import { nextMoment, type Seen } from '../../src/control-plane/seen.ts';
import { createMembers } from '../../src/control-plane/service/members.ts';
import { rememberedRevisions } from '../../src/control-plane/store/changes.ts';
import type { Db } from '../../src/control-plane/store/tables.ts';
import { enroll, makeKey, makeNetwork, startPlane, withDatabase } from './harness.ts';
import { makeOffice } from './waiting.ts';

/** A revision as it is seen now. */
async function seenOf(db: Db, network: number, revision: number): Promise<Seen> {
  const row = await db
    .selectFrom('changes')
    .select('nonce')
    .where('network_id', '=', network)
    .where('revision', '=', revision)
    .executeTakeFirst();
  return { revision, nonce: row?.nonce ?? 'later', at: nextMoment() };
}

test('who is in a network is known through every kind of change, and through more than is remembered', async () => {
  const plane = await startPlane();
  const token = await plane.signIn('owner');
  const { network, key, peer } = await makeOffice({ plane, token });
  await withDatabase(plane.dataDir, async (db) => {
    const readMembers = createMembers({ db });
    const members = async (revision: number) => [
      ...(await readMembers(network, await seenOf(db, network, revision))).keys(),
    ];
    expect(await members(2)).toEqual([peer]);
    const second = (await enroll(plane, key)).body.data.peer.id;
    // Whoever has seen no later revision need not know of it.
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

test('what was not asked for lately is forgotten, and read again', async () => {
  const plane = await startPlane();
  const token = await plane.signIn('owner');
  const { network, peer } = await makeOffice({ plane, token });
  const other = await makeNetwork(plane, token, { private_cidr: '10.78.0.0/24' });
  const { id } = (await enroll(plane, await makeKey(plane, token, other))).body.data.peer;
  await withDatabase(plane.dataDir, async (db) => {
    const readMembers = createMembers({ db }, 3);
    for (let time = 0; time < 3; time += 1) {
      expect(
        await Promise.all(
          [network, other].map(async (each) => [...(await readMembers(each, await seenOf(db, each, 2))).keys()]),
        ),
      ).toEqual([[peer], [id]]);
    }
  });
});

test('of those who called the last ones are known', () => {
  const known = new KnownPeers(2);
  const peer = { kind: 'peer', peerId: 1, name: 'edge', networkId: 1, organizationId: 1, tokenMark: 1 } as const;
  for (const hash of ['a', 'b', 'a', 'c']) known.keep(hash, peer);
  expect(['a', 'b', 'c', 'd'].map((hash) => known.get(hash) !== undefined)).toEqual([true, false, true, false]);
});
