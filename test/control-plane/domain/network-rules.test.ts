import { describe, expect, test } from 'vitest';
import {
  checkEndpointOutside,
  coveringRoute,
  parsePeerEndpoint,
  parsePrivateRange,
  parseRoutes,
  parseServedRoutes,
  parseWithdrawn,
} from '../../../src/control-plane/domain/network-rules.ts';
import { parsePrefix } from '../../../src/core/net/cidr.ts';

const network = parsePrefix('10.77.0.0/24');

describe('private_cidr', () => {
  test.each([
    '10.0.0.0/8',
    '172.16.0.0/12',
    '172.31.255.252/30',
    '192.168.0.0/16',
    '100.64.0.0/10',
    '100.127.255.252/30',
  ])('%s is private', (range) => {
    expect(parsePrivateRange(range)).toBe(range);
  });

  test.each([
    ['10.77.0.5/24', /host bits set.*10\.77\.0\.0\/24/],
    ['8.8.8.0/24', /not an IPv4 range inside/],
    ['172.15.0.0/16', /not an IPv4 range inside/],
    ['172.32.0.0/16', /not an IPv4 range inside/],
    ['100.63.0.0/16', /not an IPv4 range inside/],
    ['100.128.0.0/16', /not an IPv4 range inside/],
    ['10.0.0.0/7', /host bits|not an IPv4 range inside/],
    ['0.0.0.0/0', /not an IPv4 range inside/],
    ['192.168.0.0/15', /not an IPv4 range inside/],
    ['fd00::/64', /not an IPv4 range inside/],
    ['10.0.0.0/31', /no room/],
    ['10.0.0.1/32', /no room/],
    ['10.0.0.0', /not an address range/],
    ['10.0.0.0/08', /not an address range/],
    ['', /not an address range/],
  ])('%s is refused', (range, rule) => {
    expect(() => parsePrivateRange(range)).toThrow(rule);
  });
});

describe('routes', () => {
  test('private prefixes are taken, in the order given', () => {
    const routes = ['192.168.7.0/24', '10.0.0.1/32', '100.100.0.0/16'];
    expect(parseRoutes(routes, network, false)).toEqual(routes);
  });

  test.each([
    ['10.77.0.0/24', /overlaps/],
    ['10.77.0.128/25', /overlaps/],
    ['10.0.0.0/8', /overlaps/],
    ['192.168.7.1/24', /host bits/],
    ['8.8.8.0/24', /not an IPv4 range inside/],
    ['0.0.0.0/0', /not an IPv4 range inside/],
    ['fd00::/64', /not an IPv4 range inside/],
    ['127.0.0.0/8', /not an IPv4 range inside/],
  ])('%s is refused', (route, rule) => {
    expect(() => parseRoutes([route], network, false)).toThrow(rule);
  });

  test('the same route twice is refused', () => {
    expect(() => parseRoutes(['192.168.7.0/24', '192.168.7.0/24'], network, false)).toThrow(/twice/);
  });

  test.each(['8.8.8.0/24', '0.0.0.0/0', '1.0.0.0/8', '126.255.255.255/32', '128.0.0.0/32', '223.255.255.0/24'])(
    'with --allow-public-routes %s is taken',
    (route) => {
      expect(parseRoutes([route], network, true)).toEqual([route]);
    },
  );

  test.each([
    ['0.0.0.0/8', /unspecified/],
    ['0.255.255.255/32', /unspecified/],
    ['127.0.0.0/8', /loopback/],
    ['127.255.255.255/32', /loopback/],
    ['169.254.0.0/16', /link-local/],
    ['169.254.255.255/32', /link-local/],
    ['224.0.0.0/4', /multicast/],
    ['239.255.255.255/32', /multicast/],
    ['255.255.255.255/32', /reserved/],
    ['128.0.0.0/1', /link-local/],
    ['240.0.0.0/8', /reserved/],
    ['0.0.0.0/1', /overlaps/],
    ['10.77.0.0/25', /overlaps/],
    ['::/0', /not an IPv4 range/],
  ])('even then %s is refused', (route, rule) => {
    expect(() => parseRoutes([route], network, true)).toThrow(rule);
  });

  test('a connector serves only what its network offers', () => {
    const offered = [parsePrefix('192.168.7.0/24'), parsePrefix('192.168.8.0/24')];
    expect(parseServedRoutes(['192.168.8.0/24'], offered)).toEqual(['192.168.8.0/24']);
    expect(() => parseServedRoutes(['192.168.8.0/25'], offered)).toThrow(/not a route of the network/);
  });
});

describe('endpoint', () => {
  test.each([
    ['203.0.113.22:51820', '203.0.113.22:51820'],
    ['Edge.Example.NET:51820', 'edge.example.net:51820'],
    ['[2001:DB8:0::1]:51820', '[2001:db8::1]:51820'],
    ['10.1.2.3:1', '10.1.2.3:1'],
  ])('%s is kept as %s', (text, kept) => {
    expect(parsePeerEndpoint(text, false)).toBe(kept);
  });

  test.each([
    ['127.0.0.1:51820', /loopback/],
    ['[::1]:51820', /loopback/],
    ['localhost:51820', /loopback/],
    ['0.0.0.0:51820', /unspecified/],
    ['[::]:51820', /unspecified/],
    ['169.254.169.254:80', /link-local/],
    ['[fe80::1]:51820', /link-local/],
    ['224.0.0.1:51820', /multicast/],
    ['[ff02::1]:51820', /multicast/],
    ['203.0.113.22', /not an endpoint/],
    ['203.0.113.22:0', /not an endpoint/],
    ['203.0.113.22:65536', /not an endpoint/],
    ['[::ffff:127.0.0.1]:51820', /IPv4-mapped IPv6/],
    ['edge.example.net:51820\nPostUp = id', /not an endpoint/],
    ['', /not an endpoint/],
  ])('%j is refused', (text, rule) => {
    expect(() => parsePeerEndpoint(text, false)).toThrow(rule);
  });

  test('where only this machine can call, its own addresses are taken', () => {
    expect(parsePeerEndpoint('127.0.0.1:51820', true)).toBe('127.0.0.1:51820');
    expect(parsePeerEndpoint('localhost:51820', true)).toBe('localhost:51820');
  });
});

const lan = parsePrefix('192.168.7.0/24');
const office = { range: network, routes: [parsePrefix('0.0.0.0/0'), lan] };

describe('an endpoint in the tunnel', () => {
  test.each([
    ['10.77.0.0:1', "the network's own range 10.77.0.0/24"],
    ['10.77.0.255:1', "the network's own range 10.77.0.0/24"],
    ['192.168.7.1:1', 'the route 192.168.7.0/24'],
    // Hosts exclude endpoints from the default route.
    ['203.0.113.1:1', null],
    ['10.77.1.0:1', null],
    ['[2001:db8::1]:1', null],
    ['edge.example.net:1', null],
  ])('%s lies in %s', (endpoint, covering) => {
    expect(coveringRoute(endpoint, office)).toBe(covering);
    const check = () => checkEndpointOutside(endpoint, office);
    if (covering === null) expect(check).not.toThrow();
    else expect(check).toThrow(`lies in ${covering}, which leads into the tunnel`);
  });

  test('is one of the added routes alone, where those are all that is given', () => {
    expect(coveringRoute('10.77.0.1:1', { range: null, routes: [lan] })).toBeNull();
    expect(coveringRoute('192.168.7.1:1', { range: null, routes: [lan] })).toBe('the route 192.168.7.0/24');
  });
});

test('what is withdrawn is a route of the network or its range, once and sorted', () => {
  const withdraw = (...texts: string[]) => parseWithdrawn(texts, office);
  expect(withdraw('192.168.7.0/24', '10.77.0.0/24', '192.168.7.0/24')).toEqual(['10.77.0.0/24', '192.168.7.0/24']);
  expect(withdraw('10.77.0.0/24', '192.168.7.0/24')).toEqual(['10.77.0.0/24', '192.168.7.0/24']);
  expect(withdraw()).toEqual([]);
  for (const text of ['192.168.8.0/24', '10.77.0.0/25', '192.168.0.0/16'])
    expect(() => withdraw(text)).toThrow(/neither a route of the network nor its private_cidr/);
  expect(parseServedRoutes(['192.168.7.0/24', '192.168.7.0/24'], office.routes)).toEqual([lan]);
});
