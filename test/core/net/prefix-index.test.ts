import fc from 'fast-check';
import { expect, it } from 'vitest';
import { covers, overlaps, type Prefix } from '../../../src/core/net/cidr.ts';
import { PrefixIndex } from '../../../src/core/net/prefix-index.ts';
import { prefix, prefixes } from '../samples.ts';

/** Prefixes of both families, close enough to each other to meet. */
const crowded = fc.oneof(
  prefixes,
  fc
    .tuple(fc.integer({ min: 0, max: 15 }), fc.integer({ min: 24, max: 28 }))
    .map(([place, length]) => prefix(`10.0.0.${(place * 16) & (0xff << (32 - length)) & 0xff}/${length}`)),
  fc.integer({ min: 0, max: 3 }).map((place) => prefix(`fd00:${place}::/32`)),
  fc.constantFrom(prefix('::/0'), prefix('0.0.0.0/0'), prefix('fd00::/16')),
);

const indexOf = (members: readonly Prefix[]) => new PrefixIndex(members.map((each) => [each, each]));

it('finds what overlaps, like a linear search', () => {
  fc.assert(
    fc.property(fc.array(crowded), crowded, (members, asked) => {
      const found = indexOf(members).findOverlap(asked);
      if (found === null) expect(members.filter((each) => overlaps(each, asked))).toEqual([]);
      else expect(overlaps(found, asked)).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

it('finds what lies within, like a linear search', () => {
  fc.assert(
    fc.property(fc.array(crowded), crowded, (members, asked) => {
      const found = indexOf(members).findWithin(asked);
      if (found === null) expect(members.filter((each) => covers(asked, each))).toEqual([]);
      else expect(covers(asked, found)).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

it('returns the value of the first of two equal prefixes', () => {
  const index = new PrefixIndex([
    [prefix('10.0.0.0/8'), 'one'],
    [prefix('10.0.0.0/8'), 'other'],
  ]);
  expect(index.findOverlap(prefix('10.1.0.0/16'))).toBe('one');
});
