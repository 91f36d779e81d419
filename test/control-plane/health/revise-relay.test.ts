import { expect, test } from 'vitest';
import { reviseRelay } from '../../../src/control-plane/health/revise-relay.ts';
import { saveFollowing } from '../../../src/control-plane/store/following.ts';
import { contextOver } from '../harness.ts';
import { now, withRows } from '../store/stored-rows.ts';

test('reports of many hosts are one revision for each 500 of them, and then none', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    const at = new Date(now);
    const context = contextOver(db, {
      clock: { now: () => at, steadyNow: () => now, advance: () => {}, setBack: () => {} },
    });
    const hosts: number[] = [];
    for (let count = 0; count < 501; count += 1) {
      const id = await addPeer({ address: `10.77.${count}` }, { announced: 'online' });
      await saveFollowing(db, id, true);
      hosts.push(id);
    }
    const other = await addPeer({ network_id: await addNetwork() }, { announced: 'online' });
    await saveFollowing(db, other, true);
    const states: object[] = [];
    for (let count = 0; count < 3; count += 1) {
      await reviseRelay(context, network);
      const marked = await db.selectFrom('peers').select('id').where('follows_relay', '=', 1).orderBy('id').execute();
      const { revision } = await db
        .selectFrom('networks')
        .select('revision')
        .where('id', '=', network)
        .executeTakeFirstOrThrow();
      states.push([revision, marked.map(({ id }) => id)]);
    }
    expect(states).toEqual([
      [2, hosts.slice(0, 500)],
      [3, hosts],
      [3, hosts],
    ]);
    const changes = await db.selectFrom('changes').select('peer_id').where('revision', '=', 2).execute();
    expect(changes.map(({ peer_id }) => peer_id).toSorted()).toEqual(hosts.slice(0, 500).toSorted());
  }));
