import { expect, test } from 'vitest';
import type { PeerCaller } from '../../../src/control-plane/domain/caller.ts';
import { hashToken } from '../../../src/control-plane/domain/tokens.ts';
import { reviseRelay } from '../../../src/control-plane/health/revise-relay.ts';
import { storeReport } from '../../../src/control-plane/health/store-report.ts';
import { tokenMarkOf } from '../../../src/control-plane/store/peers/peers.ts';
import { saveStatements } from '../../../src/control-plane/store/statements.ts';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { contextOver } from '../harness.ts';
import { now, withRows } from '../store/stored-rows.ts';

const clock = { now: () => new Date(now), steadyNow: () => now, advance: () => {}, setBack: () => {} };

test('reports of many hosts are one revision for each 500 of them, and then none', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    const context = contextOver(db, { clock });
    const hosts: number[] = [];
    for (let count = 0; count < 501; count += 1) {
      const id = await addPeer({ address: `10.77.${count}` }, { announced: 'online' });
      await saveStatements(db, id, { follows_relay: 1, enforces_rules: 0 });
      hosts.push(id);
    }
    const other = await addPeer({ network_id: await addNetwork() }, { announced: 'online' });
    await saveStatements(db, other, { follows_relay: 1, enforces_rules: 0 });
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

test('a report needs an evaluation while the map differs from it, also if the one before was the same', () =>
  withRows(async ({ db, organization: organizationId, network: networkId, addPeer }) => {
    const token_hash = hashToken(new Secret('cpp_of-the-host'));
    const peerId = await addPeer({ token_hash }, { announced: 'online' });
    const unlimited = { take: () => () => {}, check: () => {}, hasRoom: () => true };
    const context = contextOver(db, { clock }, { reportEventLimit: unlimited });
    const caller: PeerCaller = {
      ...{ kind: 'peer', peerId, name: 'host-1', networkId, organizationId, tokenMark: tokenMarkOf(token_hash) },
      ...{ expiresAt: null, awaitsApproval: false, address: '127.0.0.1', access: { roles: [], peer: true } },
    };
    const report = (body: object) => storeReport(context, caller, networkId, peerId, body);
    expect([await report({}), await report({ follows_relay: true })]).toEqual([false, true]);
    // The control plane ended before it evaluated the network.
    expect(await report({ follows_relay: true })).toBe(true);
    await reviseRelay(context, networkId);
    expect([await report({ follows_relay: true }), await report({})]).toEqual([false, true]);
  }));
