import { BlockList } from 'node:net';
import fc from 'fast-check';
import IPCIDR from 'ip-cidr';
import { describe, expect, it } from 'vitest';
import { InvalidValue } from '../../../src/core/errors/index.ts';
import {
  addressAt,
  addressOf,
  comparePrefixes,
  covers,
  lengthOf,
  maskPrefix,
  overlaps,
  parseAddress,
  parsePrefix,
  rangeOf,
} from '../../../src/core/net/cidr.ts';
import { firstOf, prefixes } from '../samples.ts';

describe('prefixes', () => {
  it.each(['10.0.0.0/8', '0.0.0.0/0', '192.168.1.7/32', 'fd00::/8', '2001:db8::/32', '::/0'])('reads %s', (text) => {
    expect(parsePrefix(text)).toBe(text);
  });

  it.each([
    '10.0.0.0',
    '10.0.0.0/33',
    '10.0.0.0/08',
    '010.0.0.0/8',
    '10.0.0.0/-1',
    '10.0.0/8',
    '10.0.0.0/8 ',
    ' 10.0.0.0/8',
    '10.0.0.0/8\n',
    'fd00::/129',
    'fe80::1%eth0/64',
    '::ffff:10.0.0.0/104',
    '::1.2.3.4/128',
    '0x7f.1/8',
    '*/8',
    '',
    '/',
    '10.0.0.0/8/8',
  ])('refuses %j', (text) => {
    expect(() => parsePrefix(text)).toThrow(InvalidValue);
    expect(() => maskPrefix(text)).toThrow(InvalidValue);
  });

  it('names the range that host bits probably meant', () => {
    expect(() => parsePrefix('10.77.0.5/24', '--cidr')).toThrow(
      '--cidr "10.77.0.5/24" has host bits set; you probably mean 10.77.0.0/24',
    );
    expect(maskPrefix('10.77.0.5/24')).toBe('10.77.0.0/24');
  });

  it('spells IPv6 as the kernel does', () => {
    expect(maskPrefix('FD00:0:0:1::1/64')).toBe('fd00:0:0:1::/64');
    expect(parseAddress('2001:DB8:0:0::1')).toBe('2001:db8::1');
  });

  it('never mixes families, unlike ip-cidr', () => {
    expect(covers(parsePrefix('fd00::/8'), parseAddress('253.0.0.1'))).toBe(false);
    expect(covers(parsePrefix('0.0.0.0/0'), parseAddress('fd00::1'))).toBe(false);
    expect(covers(parsePrefix('::/0'), parseAddress('10.0.0.1'))).toBe(false);
  });

  it('agrees with ip-cidr on IPv4', () => {
    fc.assert(
      fc.property(prefixes, fc.integer({ min: 0, max: 0xffffffff }), (prefix, number) => {
        const cidr = new IPCIDR(prefix);
        const [first, last] = cidr
          .toRange<{ toString(): string }>({ type: 'bigInteger' })
          .map((each) => BigInt(`${each}`));
        expect(rangeOf(prefix)).toEqual({ first, last });
        const given = `${addressAt(BigInt(number))}/${lengthOf(prefix)}`;
        expect(maskPrefix(given)).toBe(`${new IPCIDR(given).start<string>()}/${lengthOf(prefix)}`);
      }),
    );
  });

  it('agrees with ip-cidr on the range of an IPv6 prefix', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(0xffff), { minLength: 7, maxLength: 7 }), fc.nat(128), (groups, bits) => {
        const prefix = maskPrefix(`2001:${groups.map((group) => group.toString(16)).join(':')}/${bits}`);
        const [first, last] = new IPCIDR(prefix)
          .toRange<{ toString(): string }>({ type: 'bigInteger' })
          .map((each) => BigInt(`${each}`));
        expect(rangeOf(prefix)).toEqual({ first, last });
      }),
    );
  });

  it('reads back what it wrote, and masks nothing further', () => {
    fc.assert(
      fc.property(prefixes, (prefix) => {
        expect(parsePrefix(prefix)).toBe(prefix);
        expect(maskPrefix(`${addressOf(prefix)}/${lengthOf(prefix)}`)).toBe(prefix);
      }),
    );
  });

  it('covers what the kernel of Node covers', () => {
    fc.assert(
      fc.property(prefixes, prefixes, (outer, inner) => {
        const list = new BlockList();
        list.addSubnet(addressOf(outer), lengthOf(outer));
        const first = firstOf(inner);
        expect(covers(outer, first)).toBe(list.check(first));
        expect(covers(outer, inner)).toBe(list.check(first) && lengthOf(outer) <= lengthOf(inner));
        expect(overlaps(outer, inner)).toBe(covers(outer, inner) || covers(inner, outer));
        expect(overlaps(outer, inner)).toBe(overlaps(inner, outer));
      }),
    );
  });
});

it('prefixes are in the order of family, address and length, the widest first', () => {
  const sorted = [
    '0.0.0.0/0',
    '9.0.0.0/8',
    '10.0.0.0/8',
    '10.0.0.0/9',
    '10.0.0.0/32',
    '100.0.0.0/8',
    '::/0',
    'fd00::/8',
  ];
  expect(
    sorted
      .toReversed()
      .map((text) => parsePrefix(text))
      .toSorted(comparePrefixes),
  ).toEqual(sorted);
});
