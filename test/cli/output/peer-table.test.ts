import { describe, expect, it } from 'vitest';
import type { NetworkPeer, PeerHealth } from '../../../src/api/admin-service.ts';
import { peersToJson, peerTable } from '../../../src/cli/output/peer-table.ts';

const peer = (
  id: number,
  more: Pick<NetworkPeer, 'name' | 'peer_type' | 'priority' | 'suspended_at' | 'expires_at' | 'tags'>,
): NetworkPeer => ({
  ...{ id, address: `10.77.0.${id}`, endpoint: null, public_key: 'key', created_at: null },
  ...more,
});

it('shows priorities where a connector has one, and no column of them elsewhere', () => {
  const edge = { name: 'edge', peer_type: 'connector' } as const;
  const web = peer(2, { name: 'web', peer_type: 'origin' });
  const rows = (of: Parameters<typeof peerTable>[0]) =>
    peerTable(of, null)
      .split('\n')
      .map((row) => row.trim().split(/ {2,}/).slice(0, 4));
  expect(rows([peer(1, { ...edge, priority: 10 }), web, peer(3, edge)])).toEqual([
    ['peer', 'name', 'type', 'priority'],
    ['1', 'edge', 'connector', '10'],
    ['2', 'web', 'origin', '-'],
    ['3', 'edge', 'connector', '0'],
  ]);
  expect(peerTable([peer(1, edge), web], null)).not.toContain('priority');
});

it('shows who is suspended or has expired, and until when others may stay', () => {
  const type = 'origin' as const;
  const at = '2030-01-01T00:00:00.000Z';
  const lost = peer(1, { name: 'lost', peer_type: type, suspended_at: at });
  const guest = peer(2, { name: 'guest', peer_type: type, expires_at: at });
  const rows = (now: string) =>
    peerTable([lost, guest], null, { now: new Date(now) })
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

it('shows tags where a peer has any, and what enforces the rules in a closed network', () => {
  const web = peer(1, { name: 'web', peer_type: 'origin', tags: ['web', 'prod'] });
  const phone = peer(2, { name: 'phone', peer_type: 'admin_device' });
  const enforcement = new Map<string, 'destination' | 'nothing'>([
    ['1', 'destination'],
    ['2', 'nothing'],
  ]);
  const rows = (options: Parameters<typeof peerTable>[2]) =>
    peerTable([web, phone], null, options)
      .split('\n')
      .map((row) => row.trim().split(/ {2,}/).slice(3, 5));
  expect(rows({ enforcement })).toEqual([
    ['tags', 'enforced by'],
    ['web, prod', 'destination'],
    ['-', 'nothing'],
  ]);
  expect(rows({})[0]).toEqual(['tags', 'address']);
  expect(peerTable([phone], null)).not.toMatch(/tags|enforced/);
  const json = peersToJson([web, phone, peer(3, { name: 'out', peer_type: 'origin' })], null, new Map(), enforcement);
  expect(json.map((each) => [each.tags, each.enforced_by])).toEqual([
    [['web', 'prod'], 'destination'],
    [undefined, 'nothing'],
    [undefined, null],
  ]);
  expect(peersToJson([web], null)[0]).not.toHaveProperty('enforced_by');
});

describe('what hosts observe', () => {
  const observed = (id: number, more: Partial<PeerHealth>): [string, PeerHealth] => [
    String(id),
    { id, state: 'unknown', reachable_by: 0, witnesses: 0, last_seen: null, version: null, paths: [], ...more },
  ];
  const peers = [1, 2, 3, 4].map((id) => peer(id, { name: `host-${id}`, peer_type: 'origin' }));
  const last_seen = '2030-01-01T00:00:00.000Z';
  const health = new Map([
    observed(1, { state: 'online', reachable_by: 1, witnesses: 2, last_seen, version: '0.1.0\u001b[2J' }),
    observed(2, { state: 'online', last_seen, paths: [{ peer: 1, path: 'direct' }] }),
    observed(3, { state: 'offline', paths: [{ peer: 1, path: 'down' }] }),
  ]);

  it('stands in columns of their own, and nothing of it is obeyed by a terminal', () => {
    const [lost, ...others] = peers;
    const all = [{ ...(lost as NetworkPeer), suspended_at: last_seen }, ...others];
    const rows = peerTable(all, health, { now: new Date('2030-01-01T00:00:30Z') })
      .split('\n')
      .map((row) => row.split(/ {2,}/).slice(3, 7));
    expect(rows).toEqual([
      ['state', 'last seen', 'path', 'version'],
      ['suspended', '30 s ago', 'direct, 1 of 2', '0.1.0\ufffd[2J'],
      ['online', '30 s ago', '-', '-'],
      ['offline', '-', '-', '-'],
      ['unknown', '-', '-', '-'],
    ]);
  });

  it('is in JSON, and null in each field where the service collects nothing', () => {
    const facts = ({ state, path, version, reachable_by, witnesses }: ReturnType<typeof peersToJson>[number]) => [
      ...[state, path, version, reachable_by, witnesses],
    ];
    expect(peersToJson(peers, health).map(facts)).toEqual([
      ['online', 'direct', '0.1.0\u001b[2J', 1, 2],
      ['online', null, null, 0, 0],
      ['offline', null, null, 0, 0],
      ['unknown', null, null, null, null],
    ]);
    expect(peersToJson(peers.slice(0, 1), null)).toEqual([
      {
        ...peers[0],
        ...{ state: null, last_seen: null, version: null, path: null, reachable_by: null, witnesses: null },
      },
    ]);
  });
});
