import { expect, test } from 'vitest';
import { KnownPeers } from '../../src/control-plane/known-peers.ts';
import { createMembers } from '../../src/control-plane/service/members.ts';
import { rememberedRevisions } from '../../src/control-plane/store/changes.ts';
import { enroll, makeKey, makeNetwork, startPlane, withDatabase } from './harness.ts';
import { makeOffice } from './waiting.ts';

test('who is in a network is known through every kind of change, and through more than is remembered', async () => {
  const plane = await startPlane();
  const token = await plane.signIn('owner');
  const { network, key, peer } = await makeOffice({ plane, token });
  await withDatabase(plane.dataDir, async (db) => {
    const readMembers = createMembers({ db });
    const members = async (revision: number) => [...(await readMembers(network, revision))];
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
    await db.updateTable('networks').set({ revision: forgotten }).execute();
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
      expect([[...(await readMembers(network, 2))], [...(await readMembers(other, 2))]]).toEqual([[peer], [id]]);
    }
  });
});

test('of those who called the last ones are known', () => {
  const known = new KnownPeers(2);
  const peer = { kind: 'peer', peerId: 1, name: 'edge', networkId: 1, organizationId: 1 } as const;
  for (const hash of ['a', 'b', 'a', 'c']) known.keep(hash, peer);
  expect(['a', 'b', 'c', 'd'].map((hash) => known.get(hash) !== undefined)).toEqual([true, false, true, false]);
});
