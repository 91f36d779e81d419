import { describe, expect, it } from 'vitest';
import { parsePrefix } from '../../../src/core/net/cidr.ts';
import { formatEndpoint } from '../../../src/core/net/endpoint.ts';
import { choosePairCandidates, filterCandidates, type StatedEndpoints } from '../../../src/core/paths/candidates.ts';

const scope = {
  range: parsePrefix('10.77.0.0/24'),
  routes: [parsePrefix('192.168.5.0/24')],
  taken: new Set(['192.0.2.9:443', '192.0.2.8:51820', '[2001:db8::8]:51820']),
};
const filter = (texts: readonly string[], on = scope) => filterCandidates(texts, on).map(formatEndpoint);

describe('filterCandidates', () => {
  it.each([
    ['a name', 'host.example:51820'],
    ['no port', '192.0.2.1'],
    ['other text', 'x'.repeat(500)],
    ['loopback', '127.0.0.1:51820'],
    ['loopback', '[::1]:51820'],
    ['unspecified', '0.0.0.0:51820'],
    ['unspecified', '[::]:51820'],
    ['link-local', '169.254.1.1:51820'],
    ['link-local', '[fe80::1]:51820'],
    ['multicast', '224.0.0.251:51820'],
    ['multicast', '[ff02::1]:51820'],
    ['broadcast', '255.255.255.255:51820'],
    ['reserved', '240.0.0.1:51820'],
    ['mapped', '[::ffff:192.0.2.1]:51820'],
    ['all of IPv4', '[64:ff9b::192.0.2.1]:51820'],
    ['the range of the network', '10.77.0.7:51820'],
    ['a route of the network', '192.168.5.7:51820'],
    ['the control plane', '192.0.2.9:443'],
    ['another peer', '192.0.2.8:51820'],
    ['another peer, in another form', '[2001:DB8:0::8]:51820'],
  ])('leaves out %s: %s', (_, text) => {
    expect(filter([text, '192.0.2.7:51820'])).toEqual(['192.0.2.7:51820']);
  });

  it('keeps the address of another socket with another port', () => {
    expect(filter(['192.0.2.9:51820', '192.0.2.8:443'])).toEqual(['192.0.2.9:51820', '192.0.2.8:443']);
  });

  it('keeps each socket once, in the canonical form', () => {
    expect(filter(['[2001:DB8::1]:1', '[2001:db8:0::1]:1', '10.78.0.1:1'])).toEqual(['[2001:db8::1]:1', '10.78.0.1:1']);
  });

  it('keeps addresses of a default route, and of no other', () => {
    const routes = ['0.0.0.0/0', '128.0.0.0/1', '198.51.100.0/24'].map((text) => parsePrefix(text));
    expect(filter(['192.0.2.7:51820', '198.51.100.7:51820'], { ...scope, routes })).toEqual(['192.0.2.7:51820']);
  });
});

const stated = (fields: Partial<StatedEndpoints>): StatedEndpoints => ({
  ...{ source: '203.0.113.1', own: [], observed: [], claimed: new Set<string>(), ...fields },
});
const stood = (...endpoints: string[]) => endpoints.map((endpoint) => ({ endpoint, stood: true }));
const choose = (one: Partial<StatedEndpoints>, other: Partial<StatedEndpoints>, most = 8) =>
  choosePairCandidates([stated(one), stated(other)], scope, most);
const [here, there] = ['203.0.113.1:4711', '198.51.100.1:4712'];
const remote = { source: '198.51.100.1', observed: stood(there) };

describe('choosePairCandidates', () => {
  it('gives each the endpoints of the other in the LAN, over IPv6, and after NAT, in this order', () => {
    const { endpoints } = choose(
      { own: ['[2001:db8::1]:51820', '192.168.1.1:51820'], observed: stood(here) },
      { own: ['[2001:db8::2]:51820', '192.168.1.2:51820'], observed: stood('203.0.113.1:4713') },
    );
    expect(endpoints).toEqual([
      ['192.168.1.1:51820', '[2001:db8::1]:51820', here],
      ['192.168.1.2:51820', '[2001:db8::2]:51820', '203.0.113.1:4713'],
    ]);
  });

  it('gives private addresses to hosts at the same site alone', () => {
    const [one, two] = [{ own: ['192.168.1.1:51820'] }, { own: ['192.168.1.2:51820'] }];
    const isGiven = (first: Partial<StatedEndpoints>, second: Partial<StatedEndpoints>) => {
      const { endpoints } = choose({ ...one, ...first }, { ...two, ...second });
      return endpoints[0].includes('192.168.1.1:51820') && endpoints[1].includes('192.168.1.2:51820');
    };
    expect(isGiven({}, {})).toBe(true);
    expect(isGiven({}, { source: '198.51.100.1' })).toBe(false);
    expect(isGiven({ source: '2001:db8::1' }, { source: '2001:db8::ffff' })).toBe(true);
    expect(isGiven({ source: '2001:db8::1' }, { source: '2001:db8:0:1::1' })).toBe(false);
    // The control plane is in their LAN.
    expect(isGiven({ source: '192.168.1.1' }, { source: '192.168.1.2' })).toBe(true);
    // A proxy or a NAT is the source of one or both.
    expect(isGiven({ source: '192.168.1.254' }, { source: '192.168.1.254' })).toBe(false);
    expect(isGiven({ source: '192.168.1.1' }, { source: '192.168.1.254' })).toBe(false);
  });

  it('gives a private address that a connector observes to hosts at the same site alone', () => {
    const near = { observed: stood('192.168.1.1:51820') };
    expect(choose(near, { own: ['192.168.1.2:51820'] }).endpoints[0]).toEqual(['192.168.1.1:51820']);
    expect(choose(near, remote).endpoints[0]).toEqual([]);
  });

  it.each(['fe80::1%eth0', '::ffff:a00:1', '', '127.0.0.1'])('takes %j for no site', (source) => {
    const own = ['192.168.1.1:51820'];
    expect(
      choose({ own, source }, { own: ['192.168.1.2:51820'], source: source || '198.51.100.9' }).endpoints[0],
    ).toEqual([]);
  });

  it.each(['198.51.100.9', '2001:db8:9::9', '192.168.1.254', ''])(
    'believes the source of requests, which no packet forges, and no observation: %j',
    (source) => {
      const own = ['192.168.1.1:51820'];
      const other = { own: ['192.168.1.2:51820'], source, observed: stood(here) };
      expect(choose({ own }, other).endpoints[0]).not.toContain(own[0]);
    },
  );

  it('gives no IPv6 address that an IPv4 address is part of', () => {
    const own = [
      '[2002:c000:201::1]:1',
      '[2001:0:c000:201::1]:1',
      '[64:ff9b::c000:201]:1',
      '[fec0::1]:1',
      '[2a00:1::1]:1',
    ];
    expect(choose({ own }, { ...remote, own: ['[2a00:7::1]:1'] }).endpoints[0]).toEqual(['[2a00:1::1]:1']);
  });

  it('gives private addresses if both have one: a packet to one would reveal that of its sender', () => {
    const own = ['192.168.1.1:51820'];
    expect(choose({ own }, {}).endpoints[0]).toEqual([]);
    expect(choose({ own }, { own: ['192.168.1.2:51820'] }).endpoints).toEqual([own, ['192.168.1.2:51820']]);
  });

  it('gives IPv6 addresses if both have one', () => {
    const own = ['[2001:db8::1]:51820'];
    expect(choose({ own }, remote).endpoints[0]).toEqual([]);
    expect(choose({ own }, { ...remote, own: ['[2001:db8:7::1]:51820'] }).endpoints[0]).toEqual(own);
    expect(choose({ own }, { ...remote, observed: stood('[2001:db8:7::1]:7') }).endpoints[0]).toEqual(own);
  });

  it('believes no host that states a public IPv4 address', () => {
    expect(choose({ own: ['192.0.2.50:53', '203.0.113.1:51820'] }, remote).endpoints[0]).toEqual([]);
  });

  it('believes no host that states the socket that connectors observe of another one', () => {
    const own = ['[2001:db8::66]:51820', '[2001:db8::1]:51820'];
    const claimed = new Set(['[2001:db8::66]:51820']);
    const other = { own: ['[2001:db8::2]:51820'] };
    expect(choose({ own, claimed }, other).endpoints[0]).toEqual(['[2001:db8::1]:51820']);
    // Requests of the host come from this address: the claim of the other one is false.
    expect(choose({ own, claimed, source: '2001:db8::66' }, other).endpoints[0]).toEqual(own);
  });

  it('believes a connector if the endpoint stood, or if requests of the peer come from its address', () => {
    const observed = [{ endpoint: here, stood: false }];
    expect(choose({ observed }, remote).endpoints[0]).toEqual([here]);
    expect(choose({ observed, source: '203.0.113.2' }, remote).endpoints[0]).toEqual([]);
    expect(choose({ observed: stood(here), source: '203.0.113.2' }, remote).endpoints[0]).toEqual([here]);
  });

  it('gives no more than the maximum, and each once', () => {
    const own = Array.from({ length: 9 }, (_, index) => `192.168.1.${index}:51820`);
    const near = { own: ['192.168.1.20:51820'] };
    expect(choose({ own, observed: stood(here, here) }, near, 8).endpoints[0]).toEqual([
      ...own.slice(0, 3),
      here,
      ...own.slice(3, 7),
    ]);
    expect(choose({ observed: stood(here, here) }, {}).endpoints[0]).toEqual([here]);
  });
});

describe('the NAT of a host', () => {
  const symmetric = stood('203.0.113.1:4711', '203.0.113.1:4712');
  const steady = stood('203.0.113.1:4711', '203.0.113.1:4711');

  it.each([
    ['steady', steady],
    ['symmetric', symmetric],
    ['unknown', stood('203.0.113.1:4711')],
    ['unknown', []],
    // What is not believed, or not public, shows nothing.
    ['unknown', [...stood('203.0.113.1:4711'), { endpoint: '192.0.2.1:1', stood: false }]],
    ['unknown', stood('203.0.113.1:4711', '192.168.1.1:51820')],
    // A pool of addresses that keeps ports.
    ['steady', stood('203.0.113.1:4711', '203.0.113.2:4711')],
  ] as const)('is %s: %j', (nat, observed) => {
    expect(choose({ observed }, {}).nats).toEqual([nat, 'unknown']);
  });

  it('leaves two hosts without endpoints after NAT if no port of either is known', () => {
    const far = (observed: StatedEndpoints['observed']) => ({ source: '198.51.100.1', observed });
    const farSymmetric = far(stood('198.51.100.1:1', '198.51.100.1:2'));
    for (const other of [farSymmetric, far(stood('198.51.100.1:1'))]) {
      const { isBlocked, endpoints } = choose({ observed: symmetric }, other);
      expect([isBlocked, endpoints]).toEqual([true, [[], []]]);
    }
    const { isBlocked, endpoints } = choose({ observed: symmetric }, far(stood('198.51.100.1:1', '198.51.100.1:1')));
    expect([isBlocked, endpoints.map((each) => each.length)]).toEqual([false, [2, 1]]);
    expect(choose({ observed: stood('203.0.113.1:1') }, far(stood('198.51.100.1:1'))).isBlocked).toBe(false);
  });

  it('does not matter in the same LAN and over IPv6', () => {
    const own = ['192.168.1.1:51820', '[2001:db8::1]:51820'];
    const { endpoints } = choose({ own, observed: symmetric }, { own, observed: symmetric });
    expect(endpoints).toEqual([own, own]);
  });
});
