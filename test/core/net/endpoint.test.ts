import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { InvalidValue } from '../../../src/core/errors/index.ts';
import {
  findPortMismatch,
  formatEndpoint,
  isLiteral,
  parseEndpoint,
  sameEndpoint,
  unusableAddress,
} from '../../../src/core/net/endpoint.ts';
import { address } from '../samples.ts';

describe('endpoints', () => {
  it.each([
    ['203.0.113.22:51820', '203.0.113.22', 51820],
    ['[2001:DB8::1]:1', '2001:db8::1', 1],
    ['edge-1.Example.net:65535', 'edge-1.example.net', 65535],
    ['localhost:80', 'localhost', 80],
    ['my_gate.example.net.:80', 'my_gate.example.net', 80],
  ])('reads %s', (text, host, port) => {
    expect(parseEndpoint(text)).toEqual({ host, port });
  });

  it.each([
    '',
    ':51820',
    '203.0.113.22',
    '203.0.113.22:0',
    '203.0.113.22:65536',
    '203.0.113.22:080',
    '2001:db8::1:51820',
    '[203.0.113.22]:1',
    '[fe80::1%eth0]:1',
    '0x7f.1:53',
    '0x7f000001:53',
    '127.1:53',
    '2130706433:53',
    '1.2.3.4.5:53',
    'a b:1',
    'a\nPostUp=x:1',
    '-a.b:1',
    'a..b:1',
    `${'a'.repeat(64)}.net:1`,
    '$(reboot):1',
    '*.example.net:1',
    'x[::1]:1',
    'example.net:1 ',
    '[::1:51820',
    'é.net:1',
  ])('refuses %j, whatever wg would make of it', (text) => {
    expect(() => parseEndpoint(text)).toThrow(InvalidValue);
  });

  it('are the same where host and port are, and both may be none', () => {
    const [one, port, host] = ['a.net:1', 'a.net:2', 'b.net:1'].map((each) => parseEndpoint(each));
    const same = [one, port, host, null].map((each) => sameEndpoint(one ?? null, each ?? null));
    expect(same).toEqual([true, false, false, false]);
    expect([sameEndpoint(null, null), sameEndpoint(null, host ?? null)]).toEqual([true, false]);
  });

  it('never throws anything else, and reads back what it formats', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.webAuthority({ withPort: true }),
          fc.ipV6().map((ip) => `[${ip}]:9`),
        ),
        (text) => {
          try {
            const endpoint = parseEndpoint(text);
            expect(parseEndpoint(formatEndpoint(endpoint))).toEqual(endpoint);
          } catch (error) {
            expect(error).toBeInstanceOf(InvalidValue);
          }
        },
      ),
    );
  });

  it('distinguishes names from addresses', () => {
    expect(isLiteral(parseEndpoint('203.0.113.22:1'))).toBe(true);
    expect(isLiteral(parseEndpoint('[2001:db8::1]:1'))).toBe(true);
    expect(isLiteral(parseEndpoint('example.net:1'))).toBe(false);
  });

  it.each([
    ['127.0.0.1', 'loopback'],
    ['0.0.0.0', 'unspecified'],
    ['169.254.169.254', 'link-local'],
    ['224.0.0.1', 'multicast'],
    ['239.255.255.255', 'multicast'],
    ['255.255.255.255', 'reserved'],
    ['::', 'unspecified'],
    ['::1', 'loopback'],
    ['fe80::1', 'link-local'],
    ['febf::1', 'link-local'],
    ['ff02::1', 'multicast'],
  ])('rejects %s as an endpoint', (text, kind) => {
    expect(unusableAddress(address(text))).toBe(kind);
  });

  it.each(['203.0.113.22', '10.0.0.1', '223.255.255.255', '2001:db8::1', 'fec0::1', 'fd00::1'])(
    'lets %s be dialled',
    (text) => {
      expect(unusableAddress(address(text))).toBeNull();
    },
  );
});

it.each([
  ['0.0.0.0', 'unspecified'],
  ['0.255.255.255', 'unspecified'],
  ['1.0.0.0', null],
  ['126.255.255.255', null],
  ['127.0.0.0', 'loopback'],
  ['127.255.255.255', 'loopback'],
  ['128.0.0.0', null],
  ['169.253.255.255', null],
  ['169.254.0.0', 'link-local'],
  ['169.254.255.255', 'link-local'],
  ['169.255.0.0', null],
  ['223.255.255.255', null],
  ['224.0.0.0', 'multicast'],
  ['229.0.0.1', 'multicast'],
  ['230.0.0.1', 'multicast'],
  ['239.255.255.255', 'multicast'],
  ['240.0.0.0', 'reserved'],
  ['249.0.0.1', 'reserved'],
  ['250.0.0.1', 'reserved'],
  ['255.255.255.255', 'reserved'],
  ['::', 'unspecified'],
  ['::1', 'loopback'],
  ['::2', null],
  ['fe7f::1', null],
  ['fe80::1', 'link-local'],
  ['febf::1', 'link-local'],
  ['fec0::1', null],
  ['feff::1', null],
  ['ff00::1', 'multicast'],
  ['ffff::1', 'multicast'],
])('a peer can listen at %s, or it is %s', (text, kind) => expect(unusableAddress(address(text))).toBe(kind));

it('peers dial another port than that of the tunnel only at an address of this host', () => {
  const own = [address('203.0.113.22')];
  const mismatch = (endpoint: string | null, bound: number | null) =>
    findPortMismatch(endpoint === null ? null : parseEndpoint(endpoint), bound, own);
  expect(mismatch('203.0.113.22:51820', 40_000)).toEqual({
    endpoint: parseEndpoint('203.0.113.22:51820'),
    bound: 40_000,
  });
  expect(mismatch('203.0.113.22:51820', 51_820)).toBeNull();
  // A router may map the port.
  expect(mismatch('198.51.100.1:51820', 40_000)).toBeNull();
  expect(mismatch('edge.example:51820', 40_000)).toBeNull();
  expect(mismatch('203.0.113.22:51820', null)).toBeNull();
  expect(mismatch(null, 40_000)).toBeNull();
});
