import { describe, expect, it } from 'vitest';
import { findEntrances, linkFinder } from '../../../src/core/forward/links-toward.ts';
import type { Underlay } from '../../../src/core/host-state/actual.ts';
import { prefix, underlay } from '../samples.ts';

describe('the interfaces that lead to a route', () => {
  const linkRoutes = (route: string, changes: Partial<Underlay>) =>
    linkFinder({ ...underlay, ...changes })(prefix(route));

  it('are all of those of the most specific route, and of the routes to parts of it', () => {
    const routed = [
      { prefix: prefix('192.168.48.0/22'), link: 'eth2' },
      { prefix: prefix('192.168.48.0/22'), link: 'eth3' },
      { prefix: prefix('192.168.49.128/25'), link: 'eth4' },
      { prefix: prefix('192.168.0.0/16'), link: 'eth5' },
    ];
    expect(linkRoutes('192.168.49.0/24', { routed })).toEqual(['eth2', 'eth3', 'eth4']);
  });

  it('are those of its own family', () => {
    const half = { prefix: prefix('::/1'), link: 'tun6' };
    const lan = { prefix: prefix('fd50::/48'), link: 'eth6' };
    expect(linkRoutes('10.9.0.0/16', { routed: [half, lan] })).toEqual(['eth0']);
    expect(linkRoutes('fd50::/64', { routed: [{ prefix: prefix('10.9.0.0/16'), link: 'eth4' }, lan] })).toEqual([
      'eth6',
    ]);
  });

  it('are those too by which the kernel sends the packets of the network', () => {
    const forwarded = { '10.9.0.0/16': { links: ['wan2'], why: null } };
    expect(linkRoutes('10.9.0.0/16', { forwarded })).toEqual(['wan2', 'eth0']);
    expect(linkRoutes('10.8.0.0/16', { forwarded })).toEqual(['eth0']);
  });

  it.each([
    ['both halves', ['10.0.0.0/25', '10.0.0.128/25'], false],
    ['parts that are nested', ['10.0.0.0/25', '10.0.0.64/26', '10.0.0.128/25'], false],
    [
      'all but the last address',
      [
        '10.0.0.0/25',
        '10.0.0.128/26',
        '10.0.0.192/27',
        '10.0.0.224/28',
        '10.0.0.240/29',
        '10.0.0.248/30',
        '10.0.0.252/31',
        '10.0.0.254/32',
      ],
      true,
    ],
    [
      'all but the first address',
      [
        '10.0.0.1/32',
        '10.0.0.2/31',
        '10.0.0.4/30',
        '10.0.0.8/29',
        '10.0.0.16/28',
        '10.0.0.32/27',
        '10.0.0.64/26',
        '10.0.0.128/25',
      ],
      true,
    ],
    [
      'all but one between',
      [
        '10.0.0.0/32',
        '10.0.0.2/31',
        '10.0.0.4/30',
        '10.0.0.8/29',
        '10.0.0.16/28',
        '10.0.0.32/27',
        '10.0.0.64/26',
        '10.0.0.128/25',
      ],
      true,
    ],
  ])('include the default route unless the parts make up the whole: %s', (_, parts, hasDefault) => {
    const routed = parts.map((part) => ({ prefix: prefix(part), link: 'tun9' }));
    expect(linkRoutes('10.0.0.0/24', { routed })).toEqual(hasDefault ? ['tun9', 'eth0'] : ['tun9']);
  });

  it('include the default route where a card has parts that the default route has too', () => {
    const links = [{ name: 'eth0', kind: 'card' as const }];
    const routed = [{ prefix: prefix('10.1.0.0/16'), link: 'eth0' }];
    expect(linkRoutes('10.0.0.0/8', { routed, links, uplinks: ['eth0', 'wlan0'] })).toEqual(['eth0', 'wlan0']);
  });

  it('are those of the default routes where there is no other, and for a default route', () => {
    expect(linkRoutes('10.9.0.0/16', {})).toEqual(['eth0']);
    expect(linkRoutes('0.0.0.0/0', {})).toEqual(['eth0']);
    expect(linkRoutes('10.9.0.0/16', { uplinks: [] })).toEqual([]);
  });

  it('are those of the default routes too, where only containers or VPNs lead to parts', () => {
    const part = { prefix: prefix('10.5.0.0/24'), link: 'br-1234' };
    expect(linkRoutes('10.0.0.0/8', { routed: [part] })).toEqual(['br-1234', 'eth0']);
    const cards = ['eth0', 'eth2'].map((name) => ({ name, kind: 'card' as const }));
    const lanToo = [part, { prefix: prefix('10.1.0.0/16'), link: 'eth2' }];
    expect(linkRoutes('10.0.0.0/8', { routed: lanToo, links: cards })).toEqual(['br-1234', 'eth2']);
    expect(linkRoutes('10.0.0.0/8', { routed: [{ ...part, link: 'eth0' }], links: cards })).toEqual(['eth0']);
    const halves = ['10.0.0.0/9', '10.128.0.0/9'].map((half) => ({ prefix: prefix(half), link: 'tun9' }));
    expect(linkRoutes('10.0.0.0/8', { routed: [part, ...halves] })).toEqual(['br-1234', 'tun9']);
    expect(linkRoutes('10.0.0.0/8', { routed: halves.slice(1) })).toEqual(['tun9', 'eth0']);
  });
});

it('prefixes with the same interfaces are one entrance, in whatever order these come', () => {
  const links: Readonly<Record<string, string[]>> = {
    '10.1.0.0/24': ['eth1', 'eth2'],
    '10.2.0.0/24': ['eth2', 'eth1'],
    '10.3.0.0/24': ['eth2'],
    '10.4.0.0/24': [],
    '10.5.0.0/24': ['no name'],
  };
  expect(findEntrances(Object.keys(links).map(prefix), (route) => links[route] ?? [])).toEqual([
    { by: ['eth1', 'eth2'], from: ['10.1.0.0/24', '10.2.0.0/24'] },
    { by: ['eth2'], from: ['10.3.0.0/24'] },
  ]);
});
