import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Actual } from '../../src/core/actual.ts';
import { addressAt, covers, lengthOf, maskPrefix, type Prefix, rangeOf } from '../../src/core/cidr.ts';
import { explainDetour, findDetour, leadsIn, ownWays } from '../../src/core/detour.ts';
import { address, bare, prefix, prefixes, surroundings } from './samples.ts';

const lan = prefix('192.168.50.0/24');
const to = (text: string, link = 'eth1') => ({ prefix: prefix(text), link });

/** A host whose tunnel has an address and a route, and that routes some prefixes elsewhere. */
function routing(...routed: { prefix: typeof lan; link: string }[]): Actual {
  const addresses = [{ address: address('10.77.0.3'), length: 24 }];
  return {
    ...bare,
    link: { name: 'cpn0', mtu: 1420, up: true, alias: 'cpn:7', addresses },
    routes: [{ prefix: lan, table: 'main', protocol: '157' }],
    onLink: [prefix('10.77.0.0/24')],
    surroundings: { ...surroundings, connected: [], routed },
  };
}

describe('a part of a route that leads elsewhere', () => {
  it.each([
    ['a more specific route', [to('192.168.50.128/25')], '192.168.50.128/25'],
    ['a route to one address', [to('192.168.50.7/32')], '192.168.50.7/32'],
    ['the widest of several', [to('192.168.50.7/32'), to('192.168.50.0/26'), to('192.168.50.0/27')], '192.168.50.0/26'],
    ['no route as wide', [to('192.168.50.0/24')], undefined],
    ['no wider route', [to('192.168.0.0/16')], undefined],
    ['no route beside it', [to('192.168.51.0/25'), to('fd07::/64')], undefined],
  ])('is %s', (_what, routed, part) => {
    expect(findDetour(lan, { ...surroundings, connected: [], routed })?.prefix).toBe(part);
    expect(findDetour(lan, { ...surroundings, connected: routed, routed: [] })?.prefix).toBe(part);
  });

  it('is none of a full tunnel, which takes what has no other route', () => {
    expect(findDetour(prefix('0.0.0.0/0'), surroundings)).toBeNull();
    expect(findDetour(prefix('128.0.0.0/1'), surroundings)).toBeNull();
  });

  it('is found exactly where the kernel would prefer it', () => {
    fc.assert(
      fc.property(prefixes, prefixes, (ours, theirs) => {
        const found = findDetour(ours, { ...surroundings, connected: [], routed: [{ prefix: theirs, link: 'eth1' }] });
        expect(found !== null).toBe(lengthOf(ours) > 1 && covers(ours, theirs) && lengthOf(theirs) > lengthOf(ours));
      }),
    );
  });
});

describe('whether a prefix leads into the tunnel', () => {
  it('is told by its own route, or by the range of the address', () => {
    expect(leadsIn(lan, routing())).toBe(true);
    expect(leadsIn(prefix('10.77.0.128/25'), routing())).toBe(true);
    expect(leadsIn(prefix('192.168.50.0/25'), routing())).toBe(false);
    expect(leadsIn(prefix('192.168.60.0/24'), routing())).toBe(false);
  });

  it('is not told by a route of a table that nothing leads into, nor by an address without its route', () => {
    const up = routing();
    expect(leadsIn(lan, { ...up, routes: [{ prefix: lan, table: '51820', protocol: 'boot' }] })).toBe(false);
    const flushed = { ...up, onLink: [] };
    expect(leadsIn(prefix('10.77.0.0/24'), flushed)).toBe(false);
    expect(explainDetour(prefix('10.77.0.9/32'), 'cpn0', flushed)).toBe('no route to 10.77.0.9/32 leads into cpn0');
    // What is reached through the tunnel stays so: the route is to come back.
    expect(ownWays(flushed)).toContain('10.77.0.0/24');
    expect(ownWays({ ...up, link: up.link && { ...up.link, up: false } })).toEqual([lan]);
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
  ])('%s: where it does not, it is said why', (asked, routed, why) => {
    expect(explainDetour(prefix(asked), 'cpn0', routing(...routed))).toBe(why);
  });

  it('is so for every address of it, as the longest prefix says', () => {
    fc.assert(
      fc.property(near, fc.array(near, { maxLength: 3 }), near, (asked, theirs, ours) => {
        const actual = routing(...theirs.map((each) => ({ prefix: each, link: 'eth1' })));
        const host: Actual = { ...actual, routes: [{ prefix: ours, table: 'main', protocol: '157' }] };
        const longest = (to: bigint, among: readonly Prefix[]) =>
          Math.max(-1, ...among.filter((each) => covers(each, addressAt(to))).map(lengthOf));
        const { first, last } = rangeOf(asked);
        const addresses = Array.from({ length: Number(last - first) + 1 }, (_, index) => first + BigInt(index));
        const allLeadIn = addresses.every((to) => longest(to, [ours]) >= Math.max(0, longest(to, theirs)));
        expect(explainDetour(asked, 'cpn0', host) === null).toBe(allLeadIn);
      }),
    );
  });
});

/** Prefixes so close together that most of them overlap. */
const near = fc
  .tuple(fc.integer({ min: 0, max: 15 }), fc.integer({ min: 28, max: 32 }))
  .map(([host, length]) => maskPrefix(`10.0.0.${host}/${length}`));
