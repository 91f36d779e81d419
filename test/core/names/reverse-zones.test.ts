import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findReverseZones } from '../../../src/core/names/zone.ts';
import { addressAt, covers, maskPrefix, type Prefix } from '../../../src/core/net/cidr.ts';
import { prefix } from '../samples.ts';

test.each<[string, string[]]>([
  ['192.168.50.0/24', ['50.168.192.in-addr.arpa']],
  ['192.168.48.0/23', ['48.168.192.in-addr.arpa', '49.168.192.in-addr.arpa']],
  ['10.0.0.0/8', ['10.in-addr.arpa']],
  ['10.128.0.0/9', []],
  ['0.0.0.0/0', []],
  ['192.168.50.0/25', []],
  ['192.168.50.7/32', []],
])('%s', (route, zones) => {
  expect(findReverseZones(prefix(route), [])).toEqual(zones);
});

test('sixteen zones at most', () => {
  expect(findReverseZones(prefix('172.16.0.0/12'), [])).toHaveLength(16);
  expect(findReverseZones(prefix('172.0.0.0/11'), [])).toEqual([]);
});

test('a zone with an address of a local subnet stays with the resolver of the host', () => {
  const local = [prefix('192.168.1.0/28'), prefix('10.0.0.0/8')];
  expect(findReverseZones(prefix('192.168.0.0/16'), local)).toEqual([]);
  expect(findReverseZones(prefix('192.168.0.0/23'), local)).toEqual(['0.168.192.in-addr.arpa']);
});

test('zones cover the addresses of the route, and no other', () => {
  const routes = fc
    .tuple(fc.integer({ min: 0, max: 0xffff_ffff }), fc.integer({ min: 1, max: 32 }))
    .map(([number, length]): Prefix => maskPrefix(`${addressAt(BigInt(number))}/${length}`));
  const addresses = fc.integer({ min: 0, max: 0xffff_ffff }).map((number) => addressAt(BigInt(number)));
  fc.assert(
    fc.property(routes, addresses, (route, address) => {
      const zones = findReverseZones(route, []);
      const name = `${address.split('.').toReversed().join('.')}.in-addr.arpa`;
      const isInZone = zones.some((zone) => name.endsWith(`.${zone}`));
      expect(isInZone).toBe(zones.length > 0 && covers(route, address));
    }),
  );
});
