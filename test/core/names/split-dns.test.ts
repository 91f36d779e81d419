import { describe, expect, test } from 'vitest';
import type { RouteDns } from '../../../src/core/map/model.ts';
import { type SplitDnsInputs, splitDns } from '../../../src/core/names/split-dns.ts';
import { address, prefix } from '../samples.ts';

const lan = prefix('192.168.50.0/24');
const other = prefix('172.20.0.0/16');
const server = address('192.168.50.53');
const behind = (domains: readonly string[], route = lan, servers = [server]): RouteDns => ({ route, servers, domains });

const inputs: SplitDnsInputs = {
  entries: [behind(['corp.example'])],
  ...{ untaken: new Map(), outside: [], names: [], others: [], local: [], unusable: null },
};
const reasonsOf = (changes: Partial<SplitDnsInputs>) =>
  splitDns({ ...inputs, ...changes }).report.map(({ reason }) => reason);

describe('the domains of a route', () => {
  test('are resolved by its servers, with its reverse zones', () => {
    expect(splitDns(inputs)).toEqual({
      dns: { servers: [server], domains: ['50.168.192.in-addr.arpa', 'corp.example'] },
      report: [{ domain: 'corp.example', route: lan, servers: [server], state: 'used', reason: null }],
    });
  });

  test('without a reverse zone that another interface has', () => {
    const others = [{ domain: '50.168.192.in-addr.arpa', link: 'wg9' }];
    expect(splitDns({ ...inputs, others }).dns).toEqual({ servers: [server], domains: ['corp.example'] });
  });

  test('are not set if the route is not used', () => {
    const untaken = new Map([[lan, 'not accepted']]);
    expect(splitDns({ ...inputs, untaken })).toMatchObject({ dns: null });
    expect(reasonsOf({ untaken })).toEqual(['its route 192.168.50.0/24 is not used: not accepted']);
  });

  test('are not set if every server stays outside the tunnel', () => {
    expect(reasonsOf({ outside: [server] })).toEqual(['its DNS server 192.168.50.53 is outside the tunnel']);
    const second = address('192.168.50.54');
    const { dns } = splitDns({
      ...inputs,
      entries: [behind(['corp.example'], lan, [server, second])],
      outside: [server],
    });
    expect(dns?.servers).toEqual([second]);
  });

  test('are not set on a host that can set none', () => {
    expect(reasonsOf({ unusable: 'this host takes none' })).toEqual(['this host takes none']);
  });

  test('have one list of servers: the entry with other servers comes later', () => {
    const entries = [
      behind(['corp.example']),
      behind(['dc.example'], other, [address('172.20.0.53')]),
      behind(['x.example'], prefix('192.168.50.0/25')),
    ];
    const { dns, report } = splitDns({ ...inputs, entries });
    expect(dns).toEqual({ servers: [server], domains: ['50.168.192.in-addr.arpa', 'corp.example', 'x.example'] });
    expect(report.map(({ domain, state }) => `${domain} ${state}`)).toEqual([
      'corp.example used',
      'dc.example refused',
      'x.example used',
    ]);
    expect(report[1]?.reason).toContain('those of 192.168.50.0/24 come first');
    const untaken = new Map([[lan, 'no connector']]);
    expect(splitDns({ ...inputs, entries, untaken }).dns?.domains).toEqual(['20.172.in-addr.arpa', 'dc.example']);
  });
});

describe('a domain is refused', () => {
  test.each(['com', 'co.uk', 'github.io', 's3.amazonaws.com', 'xn--p1ai', 'corp'])(
    'as a public suffix: %s',
    (domain) => {
      expect(reasonsOf({ entries: [behind([domain])] })).toEqual([expect.stringContaining('public suffix')]);
    },
  );

  test.each([
    'cpn.internal',
    'office.cpn.internal',
    '168.192.in-addr.arpa',
    'in-addr.arpa',
    '8.b.d.0.1.0.0.2.ip6.arpa',
  ])('if no LAN resolves it: %s', (domain) => {
    expect(reasonsOf({ entries: [behind([domain])] })).toEqual(['it is not a domain that a LAN resolves']);
  });

  test.each(['cp.example.net', 'example.net'])('if it contains a name that the tunnel needs: %s', (domain) => {
    const names = ['other.example', 'CP.example.net.'];
    expect(reasonsOf({ entries: [behind([domain])], names })).toEqual([
      'it contains CP.example.net., which this host needs for the tunnel',
    ]);
  });

  test.each(['a.cp.example.net', 'xcp.example.net', 'p.example.net'])('but not next to such a name: %s', (domain) => {
    expect(reasonsOf({ entries: [behind([domain])], names: ['cp.example.net'] })).toEqual([null]);
  });

  test('if another interface has it', () => {
    expect(reasonsOf({ others: [{ domain: 'corp.example', link: 'tun0' }] })).toEqual(['the interface tun0 has it']);
    expect(reasonsOf({ others: [{ domain: 'corp.example', link: null }] })).toEqual([
      'the resolver of this host has it',
    ]);
    expect(
      reasonsOf({
        others: [
          { domain: 'example', link: 'tun0' },
          { domain: '.', link: 'tun0' },
        ],
      }),
    ).toEqual([null]);
  });

  test('and the others of its entry are used', () => {
    const { dns, report } = splitDns({ ...inputs, entries: [behind(['com', 'corp.example'])] });
    expect(dns?.domains).toContain('corp.example');
    expect(dns?.domains).not.toContain('com');
    expect(report.map(({ state }) => state)).toEqual(['refused', 'used']);
  });

  test('and an entry of refused domains alone sets nothing, nor its reverse zones', () => {
    const entries = [behind(['com']), behind(['dc.example'], other, [address('172.20.0.53')])];
    expect(splitDns({ ...inputs, entries }).dns).toEqual({
      servers: ['172.20.0.53'],
      domains: ['20.172.in-addr.arpa', 'dc.example'],
    });
  });
});
