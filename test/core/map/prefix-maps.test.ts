import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidValue, WrongUsage } from '../../../src/core/errors/index.ts';
import {
  behindRoutes,
  checkMaps,
  findMapConflicts,
  formatPrefixMap,
  localsOf,
  mostMaps,
  parsePrefixMap,
  translate,
} from '../../../src/core/map/prefix-maps.ts';
import { addressAt, covers, lengthOf, rangeOf } from '../../../src/core/net/cidr.ts';
import { address, prefix, prefixes } from '../samples.ts';

const map = (text: string) => parsePrefixMap(text, '--map');
const [site, local] = [prefix('10.201.1.0/24'), prefix('192.168.1.0/24')];
const range = { cidr: prefix('10.77.0.0/24') };

describe('a map of a prefix', () => {
  it.each([
    ['10.201.1.0/24=192.168.1.0/24', { route: site, local }],
    [' 10.201.1.0/24 = 192.168.1.0/24 ', { route: site, local }],
    ['10.201.1.7/32=192.168.1.9/32', { route: '10.201.1.7/32', local: '192.168.1.9/32' }],
  ])('is read from %j, and again as it was written', (text, expected) => {
    expect(map(text)).toEqual(expected);
    expect(map(formatPrefixMap(map(text)))).toEqual(expected);
  });

  it.each([
    ['', 'is not a map of two prefixes; write it like 10.201.1.0/24=192.168.1.0/24'],
    ['10.201.1.0/24', 'is not a map of two prefixes'],
    ['10.201.1.0/24=192.168.1.0/24=10.0.0.0/24', 'is not a map of two prefixes'],
    ['10.201.1.0/24=', 'is not an address range'],
    ['10.201.1.0/24=192.168.1.0/24;drop', 'is not an address range'],
    ['10.201.1.1/24=192.168.1.0/24', 'has host bits set; you probably mean 10.201.1.0/24'],
    ['10.201.1.0/24=192.168.1.1/24', 'has host bits set; you probably mean 192.168.1.0/24'],
    ['10.201.1.0/24=192.168.0.0/23', 'has prefixes of different lengths'],
    ['10.201.1.0/24=fd07::/24', 'only IPv4 can be mapped'],
    ['fd07::/64=fd08::/64', 'only IPv4 can be mapped'],
    ['10.201.1.0/24=10.201.1.0/24', 'has prefixes that overlap'],
    ['10.201.1.0/24=127.0.0.0/24', 'maps 127.0.0.0/24, which overlaps loopback addresses'],
    ['224.0.1.0/24=192.168.1.0/24', 'maps 224.0.1.0/24, which overlaps multicast addresses'],
    ['0.0.0.0/1=128.0.0.0/1', 'maps 0.0.0.0/1, which is half of the default route'],
  ])('is not read from %j', (text, problem) => {
    expect(() => map(text)).toThrow(InvalidValue);
    expect(() => map(text)).toThrow(problem);
  });

  it('gives each address one place, and takes it back', () => {
    expect(translate(address('10.201.1.7'), site, local)).toBe('192.168.1.7');
    expect(translate(address('10.201.1.255'), site, local)).toBe('192.168.1.255');
    fc.assert(
      fc.property(prefixes, fc.bigInt({ min: 0n, max: 2n ** 32n - 1n }), (to, number) => {
        fc.pre(lengthOf(to) >= 8);
        const from = prefix(`10.0.0.0/${lengthOf(to)}`);
        const { first, last } = rangeOf(from);
        const one = addressAt(first + (number % (last - first + 1n)));
        const there = translate(one, from, to);
        expect(covers(to, there)).toBe(true);
        expect(translate(there, to, from)).toBe(one);
      }),
    );
  });
});

describe('maps that apply together', () => {
  it.each([
    ['the same route', ['10.201.1.0/24=192.168.1.0/24', '10.201.1.0/24=192.168.2.0/24'], '10.201.1.0/24'],
    ['a part of a route', ['10.201.0.0/16=192.168.0.0/16', '10.201.1.0/24=172.16.1.0/24'], '10.201.1.0/24'],
    ['the same LAN', ['10.201.1.0/24=192.168.1.0/24', '10.201.2.0/24=192.168.1.0/24'], '192.168.1.0/24'],
    ['a LAN that is a route', ['10.201.1.0/24=10.201.2.0/24', '10.201.2.0/24=192.168.1.0/24'], '10.201.2.0/24'],
  ])('do not have %s twice', (_, texts, shared) => {
    expect(() => checkMaps(texts.map(map))).toThrow(WrongUsage);
    expect(() => checkMaps(texts.map(map))).toThrow(
      `--map ${texts[1]} and --map ${texts[0]} overlap in ${shared}; each address can be in one map only`,
    );
  });

  it('are at most so many', () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, at) => map(`10.201.${at}.0/24=192.168.${at}.0/24`));
    checkMaps(many(mostMaps));
    expect(() => checkMaps(many(mostMaps + 1))).toThrow(`at most ${mostMaps} can be`);
  });
});

describe('the prefixes behind a connector', () => {
  const other = prefix('172.31.0.0/24');
  const maps = [map('10.201.1.0/24=192.168.1.0/24')];

  it('are those of the maps, and the routes without one themselves', () => {
    expect(behindRoutes([site, other], maps)).toEqual([
      { route: site, local },
      { route: other, local: other },
    ]);
    expect(localsOf([other, site], maps)).toEqual([other, local]);
    expect(localsOf([other], maps)).toEqual([other]);
  });

  it.each([
    [
      'a map into the range of the network',
      [site],
      { [site]: `is mapped to ${local}, which overlaps the network 192.168.0.0/16` },
      '192.168.0.0/16',
    ],
    [
      'the LAN as a route too',
      [site, local],
      { [local]: `overlaps ${local}, which this host serves as ${site}` },
      '10.77.0.0/24',
    ],
    [
      'a route around the LAN',
      [site, prefix('192.168.0.0/16')],
      { '192.168.0.0/16': `overlaps ${local}, which this host serves as ${site}` },
      '10.77.0.0/24',
    ],
    ['the default route', [site, prefix('0.0.0.0/0')], {}, '10.77.0.0/24'],
    ['the LAN as a route, where nothing maps to it', [local], {}, '10.77.0.0/24'],
    ['another route', [site, other], {}, '10.77.0.0/24'],
  ])('conflict or not: %s', (_, served, expected, cidr) => {
    expect(Object.fromEntries(findMapConflicts({ cidr: prefix(cidr) }, served, maps))).toEqual(expected);
    expect(findMapConflicts(range, served, []).size).toBe(0);
  });
});
