import { expect, it } from 'vitest';
import { Secret } from '../../../src/core/crypto/secret.ts';
import { sameData } from '../../../src/core/util/same-data.ts';

const peer = () => ({ key: 'k', given: { secret: new Secret('s') }, ips: ['10.0.0.1/32', '10.0.0.2/32'], at: null });

it('is true of equal data that share no object, secrets included', () => {
  expect(sameData([peer(), peer()], [peer(), peer()])).toBe(true);
  expect(sameData({ one: 1, other: undefined }, { one: 1 })).toBe(true);
  expect(sameData({ one: 1, other: 2 }, { other: 2, one: 1 })).toBe(true);
});

it.each<[string, unknown]>([
  ['another secret', { ...peer(), given: { secret: new Secret('t') } }],
  ['another order of a list', { ...peer(), ips: peer().ips.toReversed() }],
  ['a longer list', { ...peer(), ips: [...peer().ips, '10.0.0.3/32'] }],
  ['a further field', { ...peer(), more: null }],
  ['a missing field', { key: 'k', given: peer().given, ips: peer().ips }],
  ['undefined in the place of null', { ...peer(), at: undefined }],
  ['a record in the place of a list', { ...peer(), ips: { 0: '10.0.0.1/32', 1: '10.0.0.2/32', length: 2 } }],
])('is false where the other one has %s', (_, other) => {
  expect(sameData(peer(), other)).toBe(false);
  expect(sameData(other, peer())).toBe(false);
});

it('is false where one has a field of the name of a property that every object has', () => {
  const resolved = { constructor: ['192.0.2.1'] };
  expect(sameData({}, resolved)).toBe(false);
  expect(sameData(resolved, {})).toBe(false);
});

it('is false of two maps, which it does not compare', () => {
  expect(sameData(new Map(), new Map())).toBe(false);
});
