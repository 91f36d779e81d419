import { describe, expect, it } from 'vitest';
import type { Address, Prefix } from '../../../src/core/net/cidr.ts';
import { findEndingConnections } from '../../../src/core/rules/ending-connections.ts';

const at = (address: string) => address as Address;
const peers = [
  { name: 'laptop', address: at('10.77.0.2') },
  { name: 'db', address: at('10.77.0.3') },
];
const connection = (from: string, to: string, port = 22) => ({ from: at(from), to: at(to), port });
const loss = (from: string, to: string, more: { protocol?: string; ports?: string[] } = {}) => {
  return { from, to, protocol: 'any', ports: [], ...more };
};

/** How many of these connections end. */
function count(lost: ReturnType<typeof loss>[], connections: ReturnType<typeof connection>[], isWhole = true): number {
  return findEndingConnections(connections, { cidr: '10.77.0.0/24' as Prefix, peers, lost, isWhole }).length;
}

describe('a connection ends', () => {
  const ssh = connection('10.77.0.2', '10.77.0.3');
  const toLan = connection('10.77.0.2', '192.168.50.7', 443);
  it.each<[string, ReturnType<typeof loss>, typeof ssh, boolean]>([
    ['if its peers lose it', loss('peer:laptop', 'peer:db'), ssh, true],
    ['if any sender loses it', loss('any', 'peer:db'), ssh, true],
    ['not if it goes the other way', loss('peer:db', 'peer:laptop'), ssh, false],
    ['not if another peer loses it', loss('peer:web', 'peer:db'), ssh, false],
    ['if its protocol and port lose it', loss('any', 'any', { protocol: 'tcp', ports: ['80', '20-22'] }), ssh, true],
    ['not if another port loses it', loss('any', 'any', { protocol: 'tcp', ports: ['80', '23-30'] }), ssh, false],
    ['not if another protocol loses it', loss('any', 'any', { protocol: 'udp' }), ssh, false],
    ['if its route loses it', loss('peer:laptop', 'route:192.168.50.0/24'), toLan, true],
    ['if a part of the route loses it', loss('any', 'cidr:192.168.50.7/32'), toLan, true],
    ['not if another part loses it', loss('any', 'cidr:192.168.50.8/32'), toLan, false],
    ['not by a route that covers a peer', loss('any', 'route:10.0.0.0/8'), ssh, false],
    ['not by a removed peer', loss('any', 'gone:db'), ssh, false],
    ['not by a form that it cannot read', loss('any', 'zone:db'), ssh, false],
    ['not by ports that it cannot read', loss('any', 'any', { ports: ['ssh'] }), ssh, false],
  ])('%s', (_, lost, given, ends) => {
    expect(count([lost], [given])).toBe(ends ? 1 : 0);
  });

  it('only if one end is in the network, and perhaps any such one if there are more losses than are listed', () => {
    const outside = connection('192.0.2.1', '198.51.100.1');
    expect(count([loss('any', 'any')], [outside, ssh])).toBe(1);
    expect(count([], [outside, ssh], false)).toBe(1);
  });
});
