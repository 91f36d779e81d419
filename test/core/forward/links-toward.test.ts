import { describe, expect, it } from 'vitest';
import { linkFinder } from '../../../src/core/forward/links-toward.ts';
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
