import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findExpiringRanges } from '../../../src/core/forward/expiring-ranges.ts';
import { covers, lengthOf, maskPrefix } from '../../../src/core/net/cidr.ts';
import { address, peer } from '../samples.ts';

/** A peer that expires at its id, or never, with these allowed IPs. */
const holds = (id: number, expires: boolean, ...prefixes: string[]) => ({
  peer: peer(id, expires ? { expiresAt: id } : {}),
  allowedIps: prefixes.map((each) => maskPrefix(each)),
});
const ranges = (...tunnel: ReturnType<typeof holds>[]) =>
  findExpiringRanges(
    tunnel,
    tunnel.map((each) => each.peer).filter(({ expiresAt }) => expiresAt !== undefined),
  ).map(({ first, last, at }) => `${first === last ? first : `${first}-${last}`} at ${at}`);

describe('what expires with a peer', () => {
  it('is its address and all its routes, in both families', () => {
    expect(
      ranges(holds(2, true, '10.77.0.2/32', '192.168.50.0/24', 'fd50::/64'), holds(3, false, '10.77.0.3/32')),
    ).toEqual(['10.77.0.2 at 2', '192.168.50.0-192.168.50.255 at 2', 'fd50::-fd50::ffff:ffff:ffff:ffff at 2']);
  });

  it('is of a default route what no other peer has by a longer prefix', () => {
    const exit = holds(2, true, '0.0.0.0/0', '10.77.0.2/32', '::/96');
    expect(
      ranges(exit, holds(3, false, '10.77.0.3/32', '192.168.50.0/24'), holds(4, true, '192.168.50.64/26')),
    ).toEqual([
      '0.0.0.0-10.77.0.1 at 2',
      '10.77.0.2 at 2',
      // The exit relays this one.
      '10.77.0.4 at 2',
      '10.77.0.5-192.168.49.255 at 2',
      '192.168.50.64-192.168.50.127 at 4',
      '192.168.51.0-255.255.255.255 at 2',
      '::-::255.255.255.255 at 2',
    ]);
  });

  it('is with a relay every address that it relays, by the earlier deadline of both', () => {
    const [relay, late] = [holds(2, true, '10.77.0.0/24'), holds(3, true)];
    expect(ranges(relay, late)).toEqual([
      '10.77.0.0-10.77.0.1 at 2',
      '10.77.0.2 at 2',
      '10.77.0.3 at 2',
      '10.77.0.4-10.77.0.255 at 2',
    ]);
    const soon = findExpiringRanges([holds(9, true, '10.77.0.3/32')], [late.peer]);
    expect(soon).toEqual([{ first: '10.77.0.3', last: '10.77.0.3', at: 3 }]);
  });

  it('is its address alone where the tunnel has no peer for it, or another one for its routes', () => {
    expect(
      findExpiringRanges([holds(3, false, '10.77.0.0/24', '192.168.50.0/24')], [peer(2, { expiresAt: 2 })]),
    ).toEqual([{ first: '10.77.0.2', last: '10.77.0.2', at: 2 }]);
  });

  it('is for each address what WireGuard decides by the longest prefix, and never overlaps', () => {
    const owned = fc.record({
      owner: fc.constantFrom(2, 3, 4),
      host: fc.nat(15),
      length: fc.integer({ min: 28, max: 32 }),
    });
    const everyone = fc.uniqueArray(owned, { selector: ({ host, length }) => maskPrefix(`10.0.0.${host}/${length}`) });
    fc.assert(
      fc.property(everyone, (entries) => {
        const prefixes = entries.map(({ owner, host, length }) => ({
          owner,
          prefix: maskPrefix(`10.0.0.${host}/${length}`),
        }));
        const of = (id: number) => prefixes.flatMap(({ owner, prefix }) => (owner === id ? [prefix] : []));
        const found = findExpiringRanges(
          [holds(2, true, ...of(2)), holds(3, false, ...of(3)), holds(4, true, ...of(4))],
          [],
        );
        for (let host = 0; host < 16; host += 1) {
          const at = address(`10.0.0.${host}`);
          const covering = prefixes.filter(({ prefix }) => covers(prefix, at));
          const owner = covering.toSorted((a, b) => lengthOf(b.prefix) - lengthOf(a.prefix))[0]?.owner;
          const number = BigInt(host);
          const here = found.filter(({ first, last }) => numberOf(first) <= number && number <= numberOf(last));
          expect(here.map((each) => each.at)).toEqual(owner === 2 || owner === 4 ? [owner] : []);
        }
      }),
    );
  });
});

/** The last byte of an address. */
const numberOf = (text: string) => BigInt(text.split('.').at(-1) ?? '');
