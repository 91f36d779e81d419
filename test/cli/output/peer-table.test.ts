import { expect, it } from 'vitest';
import type { NetworkPeer } from '../../../src/api/service.ts';
import { peerTable } from '../../../src/cli/output/peer-table.ts';

const peer = (
  id: number,
  more: Pick<NetworkPeer, 'name' | 'peer_type' | 'priority' | 'suspended_at' | 'expires_at'>,
): NetworkPeer => ({
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

it('shows who is suspended or has expired, and until when others may stay', () => {
  const type = 'origin' as const;
  const at = '2030-01-01T00:00:00.000Z';
  const lost = peer(1, { name: 'lost', peer_type: type, suspended_at: at });
  const guest = peer(2, { name: 'guest', peer_type: type, expires_at: at });
  const rows = (now: string) =>
    peerTable([lost, guest], new Date(now))
      .split('\n')
      .map((row) => row.trim().split(/ {2,}/).slice(3, 5));
  expect(rows('2029-12-31T23:59:59Z')).toEqual([
    ['state', 'until'],
    ['suspended', '-'],
    ['-', at],
  ]);
  expect(rows(at)).toEqual([
    ['state', 'until'],
    ['suspended', '-'],
    ['expired', at],
  ]);
});
