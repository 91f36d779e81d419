import { describe, expect, test } from 'vitest';
import { createAddressCheck, findReceiver, hostOf } from '../../../src/control-plane/health/receiver-addresses.ts';
import { addressIn, familyOf, type Prefix, parsePrefix, rangeOf } from '../../../src/core/net/cidr.ts';

const refuse = createAddressCheck([], false);

describe('over https', () => {
  test.each([
    ['0.0.0.0', 'unspecified'],
    ['10.1.2.3', 'private'],
    ['100.64.0.1', 'shared (CGNAT)'],
    ['127.0.0.1', 'loopback'],
    ['127.9.9.9', 'loopback'],
    ['169.254.169.254', 'link-local'],
    ['172.31.255.255', 'private'],
    ['192.168.1.1', 'private'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'reserved'],
    ['::', 'special'],
    ['::1', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['::ffff:7f00:1', 'loopback'],
    ['::ffff:169.254.169.254', 'link-local'],
    ['::ffff:203.0.113.7', 'special'],
    ['::127.0.0.1', 'special'],
    ['64:ff9b::a00:1', 'special'],
    ['64:ff9b::cb00:7107', 'special'],
    ['64:ff9b:1::1', 'special'],
    ['2002:7f00:1::', 'special'],
    ['2001:0:4136:e378::1', 'special'],
    ['fd00::1', 'private'],
    ['fe80::1', 'link-local'],
    ['fe80::1%eth0', 'link-local'],
    ['fec0::1', 'special'],
    ['ff02::1', 'multicast'],
  ])('%s is %s', (address, reason) => {
    expect(refuse(address)).toBe(reason);
  });

  test.each(['203.0.113.7', '100.63.255.255', '172.32.0.1', '2001:db8::7', '2606:4700::1111'])(
    '%s may be',
    (address) => {
      expect(refuse(address)).toBeNull();
    },
  );
});

test.each([
  ['0.0.0.0/8', 'unspecified'],
  ['10.0.0.0/8', 'private'],
  ['100.64.0.0/10', 'shared (CGNAT)'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.0.0/16', 'link-local'],
  ['172.16.0.0/12', 'private'],
  ['192.0.0.0/24', 'special'],
  ['192.168.0.0/16', 'private'],
  ['198.18.0.0/15', 'special'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved'],
  ['::1/128', 'loopback'],
  ['2001::/32', 'special'],
  ['2002::/16', 'special'],
  ['2000::/3', null],
  ['fc00::/7', 'private'],
  ['fe80::/10', 'link-local'],
  ['ff00::/8', 'multicast'],
] as const)('the first and the last address of %s are %s, and none next to them', (text, reason) => {
  const prefix = parsePrefix(text);
  const { first, last } = rangeOf(prefix);
  const family = familyOf(prefix);
  const reasonOf = (address: bigint) => refuse(addressIn(family, address));
  expect([reasonOf(first), reasonOf(last)]).toEqual([reason, reason]);
  const highest = (1n << (family === 4 ? 32n : 128n)) - 1n;
  const outside = [first - 1n, last + 1n].filter((address) => address >= 0n && address <= highest);
  for (const address of outside) expect(reasonOf(address)).not.toBe(reason);
});

test('plain http goes to addresses that are allowed, and to no others', () => {
  const check = createAddressCheck(['10.0.0.0/8' as Prefix, '203.0.113.7/32' as Prefix], true);
  expect(['10.1.1.1', '203.0.113.7', '203.0.113.8', '192.168.1.1'].map(check)).toEqual([
    null,
    null,
    'for https only',
    'private',
  ]);
});

test('what is allowed is, in its IPv4-mapped form too', () => {
  const check = createAddressCheck(['10.0.0.0/8' as Prefix, 'fd00::/16' as Prefix], false);
  expect(['10.1.1.1', '::ffff:10.1.1.1', 'fd00::1', 'fd01::1'].map(check)).toEqual([null, null, null, 'private']);
});

test.each([
  'https://127.0.0.1',
  'https://2130706433',
  'https://0x7f.1',
  'https://0177.0.0.1',
  'https://127.1',
  'https://[::1]',
  'https://[::ffff:127.0.0.1]',
  'https://0',
  'https://①②⑦.⓪.⓪.①',
])('%s is a literal that is refused', async (url) => {
  const never = async () => expect.unreachable();
  await expect(findReceiver(hostOf(new URL(url)), refuse, never)).rejects.toThrow(/ is (loopback|unspecified); /);
});

test('of the addresses of a name those that may be are used', async () => {
  const addresses = ['10.0.0.1', '203.0.113.7', '::1'].map((address) => ({
    address,
    family: address.includes(':') ? 6 : 4,
  }));
  const found = await findReceiver('hooks.example.net', refuse, async () => addresses);
  expect(found).toEqual([{ address: '203.0.113.7', family: 4 }]);
});

test('a name with private addresses alone is refused, as is one with none', async () => {
  const find = (...found: string[]) =>
    findReceiver('hooks.example.net', refuse, async () => found.map((address) => ({ address, family: 4 })));
  await expect(find('10.0.0.1', '127.0.0.1')).rejects.toThrow(
    '10.0.0.1 is private, 127.0.0.1 is loopback; --webhook-allow has the addresses that may be used',
  );
  await expect(find()).rejects.toThrow('no address; --webhook-allow');
});
