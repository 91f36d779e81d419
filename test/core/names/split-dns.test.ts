import { describe, expect, test } from 'vitest';
import type { RouteDns } from '../../../src/core/map/model.ts';
import { type SplitDnsInputs, splitDns } from '../../../src/core/names/split-dns.ts';
import type { Address } from '../../../src/core/net/cidr.ts';
import { address, prefix } from '../samples.ts';

const lan = prefix('192.168.50.0/24');
const other = prefix('172.20.0.0/16');
const server = address('192.168.50.53');
const at = (address: Address, port = 53) => ({ address, port });
const behind = (domains: readonly string[], route = lan, servers = [server]): RouteDns => ({ route, servers, domains });

const inputs: SplitDnsInputs = {
  entries: [behind(['corp.example'])],
  ...{ own: null, suffixes: [], untaken: new Map(), outside: [], names: [], others: [], networks: [], local: [] },
  unusable: null,
};
const reasonsOf = (changes: Partial<SplitDnsInputs>) =>
  splitDns({ ...inputs, ...changes }).report.map(({ reason }) => reason);

describe('the domains of a route', () => {
  test('are resolved by its servers, with its reverse zones', () => {
    expect(splitDns(inputs)).toEqual({
      dns: { servers: [at(server)], domains: ['50.168.192.in-addr.arpa', 'corp.example'] },
      forwarded: [{ servers: [server], domains: ['corp.example', '50.168.192.in-addr.arpa'] }],
      report: [{ domain: 'corp.example', route: lan, servers: [server], state: 'used', reason: null }],
    });
  });

  test('without a reverse zone that another interface has', () => {
    const others = [{ domain: '50.168.192.in-addr.arpa', link: 'wg9' }];
    expect(splitDns({ ...inputs, others }).dns).toEqual({ servers: [at(server)], domains: ['corp.example'] });
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
    expect(dns?.servers).toEqual([at(second)]);
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
    expect(dns).toEqual({ servers: [at(server)], domains: ['50.168.192.in-addr.arpa', 'corp.example', 'x.example'] });
    expect(report.map(({ domain, state }) => `${domain} ${state}`)).toEqual([
      'corp.example used',
      'dc.example waiting',
      'x.example used',
    ]);
    expect(report[1]?.reason).toBe(
      'until the daemon serves names, only the domains behind 192.168.50.0/24 are resolved',
    );
    const untaken = new Map([[lan, 'no connector']]);
    expect(splitDns({ ...inputs, entries, untaken }).dns?.domains).toEqual(['20.172.in-addr.arpa', 'dc.example']);
  });
});

describe('while the daemon serves names', () => {
  const own = { server: at(address('10.77.0.5'), 553), domains: ['office.cpn.internal', '0.77.10.in-addr.arpa'] };
  const dc = address('172.20.0.53');
  const entries = [behind(['corp.example']), behind(['dc.example'], other, [dc])];

  test('it is the only server, for all domains, and forwards each to its own servers', () => {
    expect(splitDns({ ...inputs, own, entries })).toMatchObject({
      dns: {
        servers: [own.server],
        domains: [
          ...['0.77.10.in-addr.arpa', '20.172.in-addr.arpa', '50.168.192.in-addr.arpa'],
          ...['corp.example', 'dc.example', 'office.cpn.internal'],
        ],
      },
      forwarded: [
        { servers: [server], domains: ['corp.example', '50.168.192.in-addr.arpa'] },
        { servers: [dc], domains: ['dc.example', '20.172.in-addr.arpa'] },
      ],
      report: [
        { domain: 'office.cpn.internal', route: null, servers: ['10.77.0.5:553'], state: 'used' },
        { domain: 'corp.example', state: 'used' },
        { domain: 'dc.example', state: 'used' },
      ],
    });
  });

  test('names of peers need no route', () => {
    expect(splitDns({ ...inputs, own, entries: [] }).dns).toEqual({
      servers: [own.server],
      domains: ['0.77.10.in-addr.arpa', 'office.cpn.internal'],
    });
  });

  test('a name that another interface has is left out', () => {
    const others = [{ domain: 'office.cpn.internal', link: 'cpn1' }];
    const { dns, report } = splitDns({ ...inputs, own, entries: [], others });
    expect(dns?.domains).toEqual(['0.77.10.in-addr.arpa']);
    expect(report).toMatchObject([{ state: 'refused', reason: 'the interface cpn1 has it' }]);
  });

  test('nothing is set on a host that can set nothing', () => {
    expect(splitDns({ ...inputs, own, unusable: 'this host takes none' }).dns).toBeNull();
  });
});

describe('a domain is refused', () => {
  test('below that of another network, which would lose names', () => {
    const entries = [behind(['db.corp.example'])];
    const others = [{ domain: 'corp.example', link: 'cpn1' }];
    expect(reasonsOf({ entries, others, networks: ['cpn1'] })).toEqual(['the interface cpn1 has corp.example']);
    expect(reasonsOf({ entries, others })).toEqual([null]);
  });

  test.each(['home.arpa', 'lan.home.arpa'])('but not the domain of home networks: %s', (domain) => {
    expect(reasonsOf({ entries: [behind([domain])] })).toEqual([null]);
  });

  test('as a public suffix', () => {
    expect(reasonsOf({ suffixes: ['corp.example'] })).toEqual([expect.stringContaining('public suffix')]);
  });

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
    const { dns, report } = splitDns({
      ...inputs,
      entries: [behind(['co.uk', 'corp.example'])],
      suffixes: ['co.uk'],
    });
    expect(dns?.domains).toContain('corp.example');
    expect(dns?.domains).not.toContain('co.uk');
    expect(report.map(({ state }) => state)).toEqual(['refused', 'used']);
  });

  test('and an entry of refused domains alone sets nothing, nor its reverse zones', () => {
    const entries = [behind(['co.uk']), behind(['dc.example'], other, [address('172.20.0.53')])];
    expect(splitDns({ ...inputs, entries, suffixes: ['co.uk'] }).dns).toEqual({
      servers: [at(address('172.20.0.53'))],
      domains: ['20.172.in-addr.arpa', 'dc.example'],
    });
  });
});
