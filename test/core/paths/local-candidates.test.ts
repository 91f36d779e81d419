import { describe, expect, it } from 'vitest';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import { formatEndpoint } from '../../../src/core/net/endpoint.ts';
import { findLocalCandidates } from '../../../src/core/paths/local-candidates.ts';
import { address, prefix, underlay } from '../samples.ts';

const tunnel = { range: prefix('10.77.0.0/24'), routes: [prefix('192.168.50.0/24'), prefix('0.0.0.0/0')] };

/** A host with these addresses, each with its subnet and link. */
function hostWith(places: readonly (readonly [string, string, string])[], changes: Partial<Underlay> = {}): Underlay {
  return {
    ...underlay,
    addresses: places.map(([each]) => address(each)),
    connected: places.map(([, subnet, link]) => ({ prefix: prefix(subnet), link })),
    uplinks: ['eth0'],
    links: [...new Set(places.map(([, , link]) => link))].map((name) => ({ name, kind: 'card' })),
    ...changes,
  };
}

const candidatesOf = (...given: Parameters<typeof hostWith>) =>
  findLocalCandidates(hostWith(...given), 51820, tunnel).map(formatEndpoint);

describe('the local candidates', () => {
  it('are private IPv4 addresses, those of the uplink first, and global IPv6 addresses', () => {
    expect(
      candidatesOf([
        ['192.168.1.7', '192.168.1.0/24', 'wlan0'],
        ['10.0.0.7', '10.0.0.0/24', 'eth0'],
        ['2001:db8:1::7', '2001:db8:1::/64', 'eth0'],
      ]),
    ).toEqual(['10.0.0.7:51820', '192.168.1.7:51820', '[2001:db8:1::7]:51820']);
  });

  it('leave out what is public IPv4, local to the host or a link, or in the tunnel', () => {
    expect(
      candidatesOf([
        ['203.0.113.7', '203.0.113.0/24', 'eth0'],
        ['127.0.0.1', '127.0.0.0/8', 'eth0'],
        ['169.254.1.1', '169.254.0.0/16', 'eth0'],
        ['10.77.0.9', '10.77.0.0/24', 'eth0'],
        ['192.168.50.9', '192.168.50.0/24', 'eth0'],
        ['fd00::7', 'fd00::/64', 'eth0'],
      ]),
    ).toEqual([]);
  });

  it('leave out links of containers alone, overlays, and links that are down', () => {
    const links: Underlay['links'] = [
      { name: 'docker0', kind: 'bridge', isInternal: true },
      { name: 'eth1', kind: 'card', isDown: true },
      { name: 'vx0', kind: 'other', isOverlay: true },
      { name: 'br0', kind: 'bridge' },
    ];
    expect(
      candidatesOf(
        [
          ['172.17.0.1', '172.17.0.0/16', 'docker0'],
          ['10.1.0.7', '10.1.0.0/24', 'eth1'],
          ['172.30.0.1', '172.30.0.0/24', 'vx0'],
          ['10.2.0.7', '10.2.0.0/24', 'br0'],
        ],
        { links },
      ),
    ).toEqual(['10.2.0.7:51820']);
  });

  it('have one address of each IPv6 subnet, not the temporary one, which the system lists first', () => {
    expect(
      candidatesOf([
        ['2001:db8:1::aaaa', '2001:db8:1::/64', 'eth0'],
        ['2001:db8:1::7', '2001:db8:1::/64', 'eth0'],
        ['2001:db8:2::7', '2001:db8:2::/64', 'eth0'],
      ]),
    ).toEqual(['[2001:db8:1::7]:51820', '[2001:db8:2::7]:51820']);
  });

  it('are at most eight, with room for IPv6', () => {
    const many = Array.from({ length: 12 }, (_, at) => [`10.0.${at}.7`, `10.0.${at}.0/24`, 'eth0'] as const);
    expect(candidatesOf(many)).toHaveLength(8);
    const both = candidatesOf([...many, ['2001:db8:1::7', '2001:db8:1::/64', 'eth0']]);
    expect(both).toHaveLength(8);
    expect(both.at(-1)).toBe('[2001:db8:1::7]:51820');
  });
});
