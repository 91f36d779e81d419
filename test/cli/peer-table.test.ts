import { expect, it } from 'vitest';
import type { NetworkPeer } from '../../src/api/service.ts';
import { peerTable } from '../../src/cli/peer-table.ts';

const peer = (id: number, more: Pick<NetworkPeer, 'name' | 'peer_type' | 'priority'>): NetworkPeer => ({
  ...{ id, address: `10.77.0.${id}`, endpoint: null, public_key: 'key', created_at: null },
  ...more,
});

it('shows priorities where a connector has one, and no column of them elsewhere', () => {
  const edge = { name: 'edge', peer_type: 'connector' } as const;
  const web = peer(2, { name: 'web', peer_type: 'origin' });
  const rows = (of: Parameters<typeof peerTable>[0]) =>
    peerTable(of)
      .split('\n')
      .map((row) => row.trim().split(/ {2,}/).slice(0, 4));
  expect(rows([peer(1, { ...edge, priority: 10 }), web, peer(3, edge)])).toEqual([
    ['peer', 'name', 'type', 'priority'],
    ['1', 'edge', 'connector', '10'],
    ['2', 'web', 'origin', '-'],
    ['3', 'edge', 'connector', '0'],
  ]);
  expect(peerTable([peer(1, edge), web])).not.toContain('priority');
});
