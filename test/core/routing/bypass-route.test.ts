import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Actual } from '../../../src/core/host-state/actual.ts';
import { tunnelTable } from '../../../src/core/host-state/marks.ts';
import { addressAt, covers, lengthOf, maskPrefix, type Prefix, rangeOf } from '../../../src/core/net/cidr.ts';
import {
  explainBypassRoute,
  findBypassRoute,
  findBypassRoutes,
  isRoutedInto,
  ownRoutePrefixes,
} from '../../../src/core/routing/bypass-route.ts';
import { rulePairOf } from '../../../src/core/routing/route-table.ts';
import { address, bare, prefix, prefixes, underlay } from '../samples.ts';

const lan = prefix('192.168.50.0/24');
const to = (text: string, metric = 20_000) => ({ prefix: prefix(text), link: 'eth1', metric });

/** A host whose tunnel has an address and a route, and that routes some prefixes elsewhere. */
function routing(...routed: { prefix: typeof lan; link: string; metric?: number }[]): Actual {
  const addresses = [{ address: address('10.77.0.3'), length: 24 }];
  return {
    ...bare,
    link: { name: 'cpn0', mtu: 1420, up: true, alias: 'cpn:7', addresses },
    routes: [{ prefix: lan, table: 'main', protocol: '157', metric: 10_000 }],
    onLink: [prefix('10.77.0.0/24')],
    underlay: { ...underlay, connected: [], routed },
  };
}

describe('a part of a route that leads elsewhere', () => {
  it.each([
    ['a more specific route', [to('192.168.50.128/25')], '192.168.50.128/25'],
    ['a route to one address', [to('192.168.50.7/32')], '192.168.50.7/32'],
    ['the widest of several', [to('192.168.50.7/32'), to('192.168.50.0/26'), to('192.168.50.0/27')], '192.168.50.0/26'],
    ['no route as wide', [to('192.168.50.0/24')], undefined],
    ['no wider route', [to('192.168.0.0/16')], undefined],
    ['no route outside it', [to('192.168.51.0/25'), to('fd07::/64')], undefined],
  ])('is %s', (_what, routed, part) => {
    expect(findBypassRoute(lan, { ...underlay, connected: [], routed })?.prefix).toBe(part);
    expect(findBypassRoute(lan, { ...underlay, connected: routed, routed: [] })?.prefix).toBe(part);
  });

  it('is none of a full tunnel, which takes what has no other route', () => {
    expect(findBypassRoute(prefix('0.0.0.0/0'), underlay)).toBeNull();
    expect(findBypassRoute(prefix('128.0.0.0/1'), underlay)).toBeNull();
  });

  it('is found exactly where the kernel would prefer it', () => {
    fc.assert(
      fc.property(prefixes, prefixes, (ours, theirs) => {
        const found = findBypassRoute(ours, {
          ...underlay,
          connected: [],
          routed: [{ prefix: theirs, link: 'eth1' }],
        });
        expect(found !== null).toBe(lengthOf(ours) > 1 && covers(ours, theirs) && lengthOf(theirs) > lengthOf(ours));
      }),
    );
  });
});

describe('whether a prefix leads into the tunnel', () => {
  it('is decided by its own route, or by the range of the address', () => {
    expect(isRoutedInto(lan, routing())).toBe(true);
    expect(isRoutedInto(prefix('10.77.0.128/25'), routing())).toBe(true);
    expect(isRoutedInto(prefix('192.168.50.0/25'), routing())).toBe(false);
    expect(isRoutedInto(prefix('192.168.60.0/24'), routing())).toBe(false);
  });

  it('is not decided by a route in a table that no rule selects, nor by an address without its route', () => {
    const up = routing();
    expect(isRoutedInto(lan, { ...up, routes: [{ prefix: lan, table: '51820', protocol: 'boot', metric: 0 }] })).toBe(
      false,
    );
    const flushed = { ...up, onLink: [] };
    expect(isRoutedInto(prefix('10.77.0.0/24'), flushed)).toBe(false);
    expect(explainBypassRoute(prefix('10.77.0.9/32'), 'cpn0', flushed)).toBe(
      'no route to 10.77.0.9/32 leads into cpn0',
    );
    // What is reached through the tunnel stays so: the route is to come back.
    expect(ownRoutePrefixes(flushed)).toContain('10.77.0.0/24');
    expect(ownRoutePrefixes({ ...up, link: up.link && { ...up.link, up: false } })).toEqual([lan]);
  });

  it.each([
    ['192.168.50.0/24', [], null],
    ['192.168.50.64/26', [], null],
    ['10.77.0.9/32', [], null],
    ['192.168.50.0/24', [to('192.168.0.0/16')], null],
    ['192.168.60.0/24', [], 'no route to 192.168.60.0/24 leads into cpn0'],
    ['192.168.0.0/16', [], 'no route to 192.168.0.0/16 leads into cpn0'],
    ['192.168.50.0/24', [to('192.168.50.7/32')], 'of 192.168.50.0/24, 192.168.50.7/32 leads to eth1'],
    ['192.168.50.64/26', [to('192.168.50.0/25')], '192.168.50.64/26 leads to eth1, by the route to 192.168.50.0/25'],
    ['192.168.50.64/26', [to('192.168.50.128/25')], null],
    ['192.168.50.0/24', [to('192.168.50.0/24', 20_000)], null],
    ['192.168.50.0/24', [to('192.168.50.0/24', 600)], '192.168.50.0/24 leads to eth1, by the route to 192.168.50.0/24'],
    ['192.168.50.7/32', [to('192.168.50.0/24', 600)], '192.168.50.7/32 leads to eth1, by the route to 192.168.50.0/24'],
    ['192.168.50.0/24', [to('192.168.50.0/24', 10_000)], null],
    ['10.77.0.9/32', [to('10.77.0.0/24', 600)], null],
  ])('%s: a prefix that does not has a reason', (asked, routed, why) => {
    expect(explainBypassRoute(prefix(asked), 'cpn0', routing(...routed))).toBe(why);
  });

  it('goes past the tunnel only by a route that precedes each of ours', () => {
    const up = routing(to('192.168.48.0/20'));
    const wider = { prefix: prefix('192.168.0.0/16'), table: 'main', protocol: '157', metric: 10_000 };
    expect(explainBypassRoute(lan, 'cpn0', { ...up, routes: [wider, ...up.routes] })).toBeNull();
    expect(explainBypassRoute(lan, 'cpn0', { ...up, routes: [wider] })).toBe(
      '192.168.50.0/24 leads to eth1, by the route to 192.168.48.0/20',
    );
  });

  it('stays outside by a throw route of the table that its route is in, and of no other', () => {
    const one = prefix('192.168.50.7/32');
    const up = { ...routing(), rules: [...rulePairOf('8350'), ...rulePairOf('8351')] };
    const thrown = (table: string, own: string) => {
      const routes = [{ prefix: lan, table: own, protocol: '157', metric: 0 }];
      return explainBypassRoute(one, 'cpn0', { ...up, routes, throwRoutes: [{ prefix: one, table }] });
    };
    expect(thrown('8350', '8350')).toBe('192.168.50.7/32 stays outside cpn0');
    expect([thrown('8351', '8350'), thrown('8350', 'main')]).toEqual([null, null]);
  });

  it.each([
    ['0.0.0.0/0', tunnelTable, true],
    ['0.0.0.0/0', 'main', false],
    ['128.0.0.0/1', tunnelTable, true],
    ['128.0.0.0/1', 'main', false],
    ['192.168.50.0/24', 'main', true],
    ['192.168.50.0/24', tunnelTable, false],
  ])('is decided by a route in the table that is meant for it: %s in %s', (text, table, isIn) => {
    const routes = [{ prefix: prefix(text), table, protocol: '157', metric: 0 }];
    expect(isRoutedInto(prefix(text), { ...routing(), routes })).toBe(isIn);
  });

  it('has a part that leads elsewhere only where it leads in itself', () => {
    const up = routing(to('192.168.50.7/32'), to('192.168.60.7/32'));
    const found = findBypassRoutes([lan, prefix('192.168.60.0/24')], up, up.underlay);
    expect([...found]).toEqual([[lan, expect.objectContaining({ prefix: '192.168.50.7/32', link: 'eth1' })]]);
  });

  it('holds for every address of it, by the longest prefix', () => {
    fc.assert(
      fc.property(near, fc.array(near, { maxLength: 3 }), near, (asked, theirs, ours) => {
        const actual = routing(...theirs.map((each) => ({ prefix: each, link: 'eth1', metric: 20_000 })));
        const host: Actual = { ...actual, routes: [{ prefix: ours, table: 'main', protocol: '157', metric: 10_000 }] };
        const longest = (to: bigint, among: readonly Prefix[]) =>
          Math.max(-1, ...among.filter((each) => covers(each, addressAt(to))).map(lengthOf));
        const { first, last } = rangeOf(asked);
        const addresses = Array.from({ length: Number(last - first) + 1 }, (_, index) => first + BigInt(index));
        const allLeadIn = addresses.every((to) => longest(to, [ours]) >= Math.max(0, longest(to, theirs)));
        expect(explainBypassRoute(asked, 'cpn0', host) === null).toBe(allLeadIn);
      }),
    );
  });
});

/** Prefixes so close together that most of them overlap. */
const near = fc
  .tuple(fc.integer({ min: 0, max: 15 }), fc.integer({ min: 28, max: 32 }))
  .map(([host, length]) => maskPrefix(`10.0.0.${host}/${length}`));
