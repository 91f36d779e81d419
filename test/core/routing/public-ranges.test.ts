import { expect, it } from 'vitest';
import { addressIn, familyOf, hostPrefix, rangeOf } from '../../../src/core/net/cidr.ts';
import { isPublic } from '../../../src/core/routing/outside.ts';
import { advertisedBy, isPrivate } from '../../../src/core/routing/public-prefixes.ts';
import { network, prefix } from '../samples.ts';

it.each(['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'])(
  '%s is private from end to end, and nothing next to it',
  (text) => {
    const range = prefix(text);
    const { first, last } = rangeOf(range);
    const at = (number: bigint) => hostPrefix(addressIn(familyOf(range), number));
    expect([isPrivate(range), isPublic(range)]).toEqual([true, false]);
    expect([first, last].map((number) => isPrivate(at(number)))).toEqual([true, true]);
    expect([first - 1n, last + 1n].map((number) => isPrivate(at(number)))).toEqual([false, false]);
  },
);

it('a network advertises its range and its routes', () => {
  expect(advertisedBy(network([]))).toEqual(['10.77.0.0/24', '192.168.50.0/24']);
});
