import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { ChangeNotifier } from '../../../src/control-plane/push/change-notifier.ts';
import type { Context } from '../../../src/control-plane/service/context.ts';
import { expirePeers } from '../../../src/control-plane/service/expiry.ts';
import { ago, now, readTime, withRows } from '../store/stored-rows.ts';

test('all peers that expired leave their networks, each with its change, its event and its entry in the audit', () =>
  withRows(async ({ db, network, addNetwork, addPeer }) => {
    const other = await addNetwork();
    const add = (network_id: number, name: string, expires_at: string | null) =>
      addPeer({ network_id, name, label: name, expires_at });
    const expired = [
      [network, await add(network, 'first', ago(2_000)), 'first'],
      [network, await add(network, 'second', ago(0)), 'second'],
      [other, await add(other, 'third', ago(1)), 'third'],
    ] as const;
    const kept = [
      await add(network, 'later', ago(-9_000)),
      await add(other, 'soon', ago(-5_000)),
      await add(other, 'never', null),
    ];
    const [notifier, healthNotifier] = [new ChangeNotifier(), new ChangeNotifier()];
    const notified: string[] = [];
    notifier.subscribe((id) => notified.push(`map of ${id}`));
    healthNotifier.subscribe((id) => notified.push(`health of ${id}`));
    const context = {
      ...{ db, now: () => new Date(now), readTime, random: randomBytes, announce: async () => {} },
      ...{ webhookTypes: new Set(), notifier, healthNotifier },
    } as unknown as Context;
    expect(await expirePeers(context)).toBe(ago(-5_000));
    const ids = expired.map(([, id]) => id);
    const listed = await db.selectFrom('peers').select(['id', 'expired']).orderBy('id').execute();
    expect(listed).toEqual([...ids.map((id) => ({ id, expired: 1 })), ...kept.map((id) => ({ id, expired: 0 }))]);
    const changes = await db
      .selectFrom('changes')
      .select(['network_id', 'revision', 'peer_id'])
      .where('revision', '>', 1)
      .orderBy('peer_id')
      .execute();
    expect(changes).toEqual(expired.map(([of, id]) => ({ network_id: of, revision: 2, peer_id: id })));
    const events = await db
      .selectFrom('events')
      .select(['network_id', 'type', 'peer_id', 'details'])
      .orderBy('peer_id')
      .execute();
    const details = '{"reason":"expired"}';
    expect(events).toEqual(expired.map(([of, id]) => ({ network_id: of, type: 'peer.removed', peer_id: id, details })));
    const entries = await db
      .selectFrom('audit_entries')
      .select(['action', 'target_id', 'target_name', 'details'])
      .orderBy('target_id')
      .execute();
    expect(entries).toEqual(
      expired.map(([of, id, name]) => ({
        action: 'peer.expire',
        target_id: id,
        target_name: name,
        details: `{"network":${of}}`,
      })),
    );
    const both = ['health', 'map'].flatMap((what) => [network, other].map((id) => `${what} of ${id}`));
    expect(notified.toSorted()).toEqual(both);
    // A second process finds none.
    expect(await expirePeers(context)).toBe(ago(-5_000));
    expect(notified).toHaveLength(4);
  }));
