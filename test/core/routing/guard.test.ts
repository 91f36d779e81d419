import { describe, expect, it } from 'vitest';
import type { SshClient, Underlay } from '../../../src/core/host-state/actual.ts';
import { hostPrefix } from '../../../src/core/net/cidr.ts';
import {
  findAddressConflict,
  findRangeOverlap,
  findRangeRefusal,
  findRefusal,
  type RouteConstraints,
} from '../../../src/core/routing/guard.ts';
import { findNested } from '../../../src/core/routing/nested-prefixes.ts';
import { address, network, prefix, underlay, usualConstraints } from '../samples.ts';

const on = (changes: Partial<RouteConstraints>): RouteConstraints => ({ ...usualConstraints, ...changes });
const ssh = (client: string, local = '203.0.113.22') => ({ address: address(client), local: address(local) });

describe('the guard', () => {
  it('lets an ordinary route pass', () => {
    expect(findRefusal(prefix('192.168.50.0/24'), usualConstraints)).toBeNull();
    expect(findRefusal(prefix('fd12::/64'), usualConstraints)).toBeNull();
  });

  it.each([
    ['0.0.0.0/0', 'default route'],
    ['::/0', 'default route'],
    ['0.0.0.0/1', 'half'],
    ['128.0.0.0/1', 'half'],
    ['8000::/1', 'half'],
    ['127.0.0.0/8', 'loopback'],
    ['64:ff9b::/96', 'NAT64'],
    ['64:ff9b::808:808/128', 'NAT64'],
    ['127.0.0.53/32', 'loopback'],
    ['126.0.0.0/7', 'loopback'],
    ['::1/128', 'loopback'],
    ['169.254.169.254/32', 'link-local'],
    ['fe80::/64', 'link-local'],
    ['224.0.0.0/4', 'multicast'],
    ['239.1.0.0/16', 'multicast'],
    ['ff02::/16', 'multicast'],
    ['0.0.0.0/8', 'unspecified'],
    ['240.0.0.0/4', 'reserved'],
  ])('refuses %s as %s', (text, kind) => {
    expect(findRefusal(prefix(text), usualConstraints)).toContain(kind);
  });

  it.each(['203.0.113.0/24', '203.0.113.128/25'])(
    'refuses %s, which is a connected subnet or a part of one',
    (text) => {
      expect(findRefusal(prefix(text), usualConstraints)).toBe('overlaps 203.0.113.0/24, which this host is in (eth0)');
    },
  );

  it('lets a route pass that a narrower connected subnet lies in, and what is in that subnet with it', () => {
    const wide = prefix('203.0.112.0/20');
    const inSubnet = on({ api: [address('203.0.113.5')], sshClients: [ssh('203.0.113.7')] });
    expect(findRefusal(wide, inSubnet)).toBeNull();
    expect(findRefusal(wide, on({ api: [address('203.0.112.5')] }))).toBe('covers the control plane (203.0.112.5)');
    expect(findRefusal(wide, on({ underlay: { ...underlay, gateways: [address('203.0.112.1')] } }))).toBe(
      'covers the default gateway (203.0.112.1)',
    );
  });

  it('refuses a range of the network that a narrower connected subnet lies in: it would hide peers', () => {
    const range = prefix('203.0.112.0/20');
    const reason = 'overlaps 203.0.113.0/24, which this host is in (eth0)';
    expect(findRefusal(range, on({ tunnelPrefixes: { ...usualConstraints.tunnelPrefixes, range } }))).toBe(reason);
    expect(findRangeRefusal(range, usualConstraints)).toBe(reason);
  });

  it('refuses what another network has', () => {
    const taken = [{ prefix: prefix('10.78.0.0/16'), by: 'network lab (cpn1)' }];
    expect(findRefusal(prefix('10.78.5.0/24'), on({ taken }))).toBe('overlaps 10.78.0.0/16 of network lab (cpn1)');
  });

  it('refuses a prefix that the host routes elsewhere, and accepts one that is only within it', () => {
    expect(findRefusal(prefix('172.31.0.0/16'), usualConstraints)).toBe('is already routed to eth1 on this host');
    expect(findRefusal(prefix('172.31.5.0/24'), usualConstraints)).toBeNull();
  });

  it.each<[string, Partial<RouteConstraints>]>([
    ['the control plane', { api: [address('198.51.100.1')] }],
    ['the default gateway', { underlay: { ...underlay, connected: [], gateways: [address('198.51.100.1')] } }],
    ['a resolver', { underlay: { ...underlay, resolvers: [address('198.51.100.1')] } }],
    ['an SSH client', { underlay: { ...underlay, resolvers: [] }, sshClients: [ssh('198.51.100.1')] }],
  ])('refuses what covers %s', (what, changes) => {
    expect(findRefusal(prefix('198.51.100.0/24'), on(changes))).toBe(`covers ${what} (198.51.100.1)`);
    expect(findRefusal(prefix('192.0.2.0/24'), on(changes))).toBeNull();
  });

  it('lets pass exactly what a person names', () => {
    const named = on({ allowed: [prefix('203.0.113.0/24')] });
    expect(findRefusal(prefix('203.0.113.0/24'), named)).toBeNull();
    expect(findRefusal(prefix('203.0.113.0/25'), named)).not.toBeNull();
  });
});

describe('what is reached through the tunnel itself', () => {
  const { tunnelPrefixes } = usualConstraints;
  const { range, own } = tunnelPrefixes;
  const route = prefix('192.168.50.0/24');
  const wider = prefix('192.168.0.0/16');
  const server = address('192.168.50.53');
  const around = (changes: Partial<Underlay>): Underlay => ({ ...underlay, ...changes });
  const resolvedBy = (...resolvers: string[]) => around({ resolvers: resolvers.map(address) });
  const reachedFrom = (...sshClients: SshClient[]) => ({ sshClients, underlay: around({ resolvers: [] }) });
  /** The tunnel is up, and leads there. */
  const up = { ...tunnelPrefixes, present: [range, route], accepted: [range, route] };
  /** It is down, and only the file tells where it led. */
  const down = { ...tunnelPrefixes, accepted: [range, route] };

  it.each([
    ['at the first join', tunnelPrefixes],
    ['while it is up', up],
    ['while it is down', down],
  ])('is, in the range, no matter for resolver and control plane %s', (_, known) => {
    const usualConstraints = on({
      underlay: resolvedBy('10.77.0.2'),
      api: [address('10.77.0.9')],
      tunnelPrefixes: known,
    });
    expect(findRefusal(range, usualConstraints)).toBeNull();
    expect(findRefusal(prefix('10.77.0.2/32'), usualConstraints)).toBeNull();
    expect(findRefusal(prefix('10.76.0.0/14'), usualConstraints)).toBeNull();
  });

  it('is, behind a connector, no matter for resolver and control plane, once the route was taken', () => {
    const outside = { underlay: resolvedBy(server), api: [] };
    const api = { underlay: resolvedBy(), api: [server] };
    expect(findRefusal(route, on(outside))).toBe('covers a resolver (192.168.50.53)');
    expect(findRefusal(route, on(api))).toBe('covers the control plane (192.168.50.53)');
    for (const known of [up, down]) {
      expect(findRefusal(route, on({ ...outside, tunnelPrefixes: known }))).toBeNull();
      expect(findRefusal(route, on({ ...api, tunnelPrefixes: known }))).toBeNull();
      expect(findRefusal(wider, on({ ...outside, tunnelPrefixes: known }))).toBeNull();
    }
  });

  it('is not what the host has a longer or an equal route to elsewhere', () => {
    for (const past of ['192.168.50.53/32', '192.168.50.0/24']) {
      const routed = [{ prefix: prefix(past), link: 'eth0' }];
      const elsewhere = on({ underlay: around({ resolvers: [server], routed }), tunnelPrefixes: up });
      expect(findRefusal(wider, elsewhere)).toBe('covers a resolver (192.168.50.53)');
    }
  });

  it.each([
    ['to this host’s own address, from a peer', ssh('10.77.0.2', own), [tunnelPrefixes, up, down]],
    ['to this host’s own address, from a LAN', ssh('192.168.50.10', own), [tunnelPrefixes, up, down]],
    ['to another address of this host, from a peer', ssh('10.77.0.2'), [up, down]],
    ['to another address of this host, from a LAN', ssh('192.168.50.10'), [up]],
  ])('is no matter for a session %s', (_, session, states) => {
    for (const known of states) {
      const usualConstraints = on({ ...reachedFrom(session), tunnelPrefixes: known });
      for (const each of [range, route, wider, hostPrefix(session.address)])
        expect(findRefusal(each, usualConstraints)).toBeNull();
    }
  });

  it('is a session to an address in the range that this host had when it was in the network before', () => {
    const left = ssh('10.77.0.2', '10.77.0.9');
    for (const each of [range, hostPrefix(left.address)]) {
      expect(findRefusal(each, on(reachedFrom(left)))).toBeNull();
      const addresses = [address('10.77.0.9')];
      const alive = on({ underlay: around({ addresses }), sshClients: [left] });
      expect(findRefusal(each, alive)).toMatch(/^covers (an SSH client|an address of)/);
    }
  });

  it('is not a session that may have come outside', () => {
    const fromLan = reachedFrom(ssh('192.168.50.10'));
    expect(findRefusal(route, on({ ...fromLan, tunnelPrefixes: down }))).toBe('covers an SSH client (192.168.50.10)');
    expect(findRefusal(route, on(reachedFrom({ ...ssh('192.168.50.10'), local: null })))).toMatch(/SSH/);
    expect(findRefusal(range, on(reachedFrom(ssh('10.77.0.2'))))).toBe('covers an SSH client (10.77.0.2)');
    const outside = on({ ...reachedFrom(ssh('198.51.100.7')), tunnelPrefixes: up });
    expect(findRefusal(prefix('198.51.100.0/24'), outside)).toBe('covers an SSH client (198.51.100.7)');
  });

  it('never exempts a claimed range outside private address space', () => {
    const claimed = { ...tunnelPrefixes, range: prefix('8.0.0.0/5') };
    const usualConstraints = on({ underlay: resolvedBy('8.8.8.8'), tunnelPrefixes: claimed });
    expect(findRefusal(claimed.range, usualConstraints)).toBe('covers a resolver (8.8.8.8)');
  });

  it('is nothing in a range that is refused itself', () => {
    const claimed = { ...tunnelPrefixes, range: prefix('10.0.0.0/8') };
    const connected = [{ prefix: prefix('10.5.0.0/24'), link: 'eth0' }];
    const sshClients = [ssh('10.9.9.7')];
    const resolvers = [address('10.9.9.53')];
    const usualConstraints = on({ underlay: around({ connected, resolvers }), sshClients, tunnelPrefixes: claimed });
    expect(findRefusal(claimed.range, usualConstraints)).toMatch(/overlaps/);
    expect(findRefusal(prefix('10.9.9.53/32'), usualConstraints)).toBe('covers a resolver (10.9.9.53)');
    expect(findRefusal(prefix('10.9.9.7/32'), usualConstraints)).toBe('covers an SSH client (10.9.9.7)');
  });

  it('is never the default gateway', () => {
    const usualConstraints = on({ underlay: around({ gateways: [address('10.77.0.254')] }), tunnelPrefixes: up });
    expect(findRefusal(range, usualConstraints)).toBe('covers the default gateway (10.77.0.254)');
  });
});

describe('what the tunnel leads to', () => {
  it('is what the host routes into it, but for a full tunnel, and into that of a later network', () => {
    const link = {
      name: 'cpn0',
      mtu: 1420,
      up: true,
      alias: null,
      addresses: [{ address: address('10.77.0.3'), length: 24 }],
    };
    const routes = ['192.168.50.0/24', '0.0.0.0/0'].map((each) => ({
      prefix: prefix(each),
      table: 'main',
      protocol: '7',
      metric: 0,
    }));
    const routed = [{ prefix: prefix('10.9.0.0/16'), link: 'cpn1' }, ...underlay.routed];
    const actual = { link, routes, rules: [], underlay: { ...underlay, routed } };
    expect(findNested(actual, [])).toEqual(['192.168.50.0/24', '10.77.0.0/24']);
    expect(findNested(actual, ['cpn1'])).toEqual(['192.168.50.0/24', '10.77.0.0/24', '10.9.0.0/16']);
    expect(findNested({ ...actual, link: { ...link, up: false } }, [])).toEqual(['192.168.50.0/24']);
  });
});

describe('an address of this host', () => {
  it.each([
    ['127.0.0.53', /loopback/],
    ['169.254.169.254', /link-local/],
    ['0.0.0.5', /unspecified/],
    ['255.255.255.255', /reserved/],
    ['203.0.113.254', /default gateway/],
    ['198.51.100.53', /resolver/],
    ['203.0.113.9', /control plane/],
    ['203.0.113.11', /peer's endpoint/],
    ['198.51.100.7', /SSH client/],
  ])('is not %s', (own, reason) => {
    const around = on({
      sshClients: [ssh('198.51.100.7')],
      api: [address('203.0.113.9')],
    });
    const endpoints = [address('203.0.113.11')];
    expect(findAddressConflict(address(own), around, endpoints)).toMatch(reason);
    expect(findAddressConflict(address(own), { ...around, allowed: [prefix(`${own}/32`)] }, endpoints)).toBeNull();
  });

  it('may be one of a subnet that it is in, where another network overlaps it', () => {
    expect(findAddressConflict(address('203.0.113.77'), usualConstraints, [])).toBeNull();
    expect(findAddressConflict(address('10.77.0.5'), usualConstraints, [])).toBeNull();
  });
});

describe('a route within the network itself', () => {
  it.each(['10.77.0.0/24', '10.77.0.128/25', '10.77.0.2/32'])('is not %s', (text) => {
    expect(findRangeOverlap(prefix(text), network([]))).toBe('lies within 10.77.0.0/24, the network itself');
  });

  it('is none that is wider, or elsewhere', () => {
    expect(findRangeOverlap(prefix('10.0.0.0/8'), network([]))).toBeNull();
    expect(findRangeOverlap(prefix('10.78.0.0/24'), network([]))).toBeNull();
  });
});

describe('of default routes,', () => {
  const judge = (text: string, taken: readonly string[], ...allowed: string[]) =>
    findRefusal(prefix(text), {
      ...usualConstraints,
      taken: taken.map((each) => ({ prefix: prefix(each), by: 'network lab' })),
      allowed: allowed.map(prefix),
    });

  it('that of IPv6 is refused also if it is allowed', () => {
    expect(judge('::/0', [], '::/0')).toMatch(/^is a default route of IPv6/);
    expect(judge('0.0.0.0/0', [], '0.0.0.0/0')).toBeNull();
  });

  it('another network takes no other route away', () => {
    expect(judge('192.168.50.0/24', ['0.0.0.0/0'])).toBeNull();
    expect(judge('192.168.50.0/24', ['0.0.0.0/0', '192.168.0.0/16'])).toBe('overlaps 192.168.0.0/16 of network lab');
    expect(judge('0.0.0.0/0', ['192.168.0.0/16', '0.0.0.0/0'], '0.0.0.0/0')).toBe('overlaps 0.0.0.0/0 of network lab');
  });
});
