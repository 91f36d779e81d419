import { isIP } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InvalidValue } from '../../../src/core/errors/index.ts';
import { type Address, maskPrefix } from '../../../src/core/net/cidr.ts';
import { parseLinkName } from '../../../src/core/net/link-name.ts';
import { parseResolvers } from '../../../src/host/linux/dns/settings.ts';
import type { ShownByIp, ShownLink, ShownRoute } from '../../../src/host/linux/ip/show.ts';
import { mayAdminister } from '../../../src/host/linux/process-files.ts';
import { parseSshClients } from '../../../src/host/linux/ssh-clients.ts';
import { gatherUnderlay } from '../../../src/host/linux/underlay.ts';
import { readAddress } from '../../../src/host/read-address.ts';

describe('readAddress', () => {
  test.each([
    ['fe80::1%eth0', 'fe80::1'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::FFFF:1.2.3.4', '1.2.3.4'],
    ['2001:DB8:0::1', '2001:db8::1'],
    ['1.2.3', null],
    ['::ffff:0102:0304', null],
    ['', null],
  ])('%s is %s', (text, expected) => {
    expect(readAddress(text)).toBe(expected);
  });
});

test('resolvers are the nameserver lines of resolv.conf that hold an address', () => {
  const text = `# nameserver 9.9.9.9
search example.com
nameserver 192.0.2.53
nameserver\tfe80::53%eth0
nameserver 192.0.2.53
nameserver dns.example
 nameserver 192.0.2.1
options edns0
`;
  expect(parseResolvers(text)).toEqual(['192.0.2.53', 'fe80::53']);
});

test('the first three resolvers count, as in glibc, unless a program queries more: a DHCP server may name many', () => {
  const lines = Array.from({ length: 60 }, (_, at) => `nameserver 93.184.216.${at}\n`);
  expect(parseResolvers(lines.join(''))).toEqual(['93.184.216.0', '93.184.216.1', '93.184.216.2']);
  expect(parseResolvers(lines.join(''), 8)).toHaveLength(8);
});

describe('parseSshClients', () => {
  const tcp = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11418 1 0000000000000000 100 0 0 10 0
   1: 0A0200C0:0016 167100CB:D431 01 00000000:00000000 02:000A5FC1 00000000     0        0 21421 4 0000000000000000 20 4 30 10 -1
   2: 0A0200C0:D432 177100CB:0016 01 00000000:00000000 02:000A5FC1 00000000     0        0 21421 4 0000000000000000 20 4 30 10 -1
   3: 0A0200C0:0016 187100CB:D431 06 00000000:00000000 03:000A5FC1 00000000     0        0 0 3 0000000000000000
   4: 0A0200C0:08AE 197100CB:D431 01 00000000:00000000 02:000A5FC1 00000000     0        0 21422 4 0000000000000000 20 4 30 10 -1
`;
  const tcp6 = `  sl  local_address                         remote_address                        st
   0: 0000000000000000FFFF00000A0200C0:0016 0000000000000000FFFF00001A7100CB:D431 01 00000000:00000000
   1: B80D0120000000000000000005000000:0016 B80D0120000000000000000007000000:D431 01 00000000:00000000
`;

  const at = (address: string, local: string | null = '192.0.2.10') => ({ address, local });

  test('reads both ends of sessions on port 22', () => {
    expect(parseSshClients(`${tcp}\n${tcp6}`, '', { order: 'LE' })).toEqual([
      at('203.0.113.22'),
      at('203.0.113.26'),
      at('2001:db8::7', '2001:db8::5'),
    ]);
  });

  test('are one for each pair of addresses, whichever end they have in common', () => {
    const ends: Record<string, string> = { a: '167100CB', b: '177100CB', first: '0A0200C0', second: '0B0200C0' };
    const sessions = (...pairs: readonly (readonly [client: string, local: string])[]) =>
      pairs.map(([client, local], index) => `${index}: ${ends[local]}:0016 ${ends[client]}:D43${index} 01`).join('\n');
    const lines = sessions(['a', 'first'], ['a', 'second'], ['a', 'first'], ['b', 'first'], ['b', 'second']);
    const all = ['203.0.113.22', '203.0.113.23'].flatMap((client) => [at(client), at(client, '192.0.2.11')]);
    expect(parseSshClients(lines, '', { order: 'LE' })).toEqual(all);
    expect(parseSshClients(lines, '203.0.113.22 50000 192.0.2.11 22', { order: 'LE' })).toEqual(all);
    const own = at('203.0.113.22', '192.0.2.12');
    expect(parseSshClients(lines, '203.0.113.22 50000 192.0.2.12 22', { order: 'LE' })).toEqual([...all, own]);
  });

  test('adds our own session, and those on its port', () => {
    expect(parseSshClients(tcp, '198.51.100.7 50000 192.0.2.10 2222', { order: 'LE' })).toEqual([
      at('203.0.113.22'),
      at('203.0.113.25'),
      at('198.51.100.7'),
    ]);
    expect(parseSshClients('', '198.51.100.7 50000')).toEqual([at('198.51.100.7', null)]);
  });

  test('adds those of SSH servers on other ports, and leaves out who did not log in', () => {
    const parse = (loggedIn: string[], known: string[], others: string[] = []) =>
      parseSshClients(tcp, '', {
        connections: { loggedIn: new Set(loggedIn), known: new Set(known) },
        findOthersSockets: (inodes) => new Set(others.filter((inode) => inodes.has(inode))),
        order: 'LE',
      });
    expect(parse(['21422'], ['21422'])).toEqual([at('203.0.113.22'), at('203.0.113.25')]);
    expect(parse(['21421', '21422'], ['21421', '21422'])).toEqual([
      ...[at('203.0.113.22'), at('203.0.113.23'), at('203.0.113.25')],
    ]);
    expect(parse(['21422'], ['21421', '21422'])).toEqual([at('203.0.113.25')]);
    expect(parse([], ['21422'], ['21421'])).toEqual([]);
  });

  test('leaves out the sockets of other users, and connections that no program accepted', () => {
    const row = (user: number, inode: number) =>
      `1: 0A0200C0:0016 167100CB:D431 01 00000000:00000000 02:000A5FC1 00000000 ${user} 0 ${inode} 4 0 20 4 30 10 -1`;
    const connections = { loggedIn: new Set(['21421']), known: new Set(['21421']) };
    for (const [line, count] of [
      [row(0, 21421), 1],
      [row(1000, 21421), 0],
      [row(0, 0), 0],
      [row(1000, 9), 0],
    ] as const)
      expect(parseSshClients(line, '', { connections, order: 'LE' })).toHaveLength(count);
  });

  test('reads the words of a big-endian machine', () => {
    expect(parseSshClients('0: C000020A:0016 CB007116:D431 01', '', { order: 'BE' })).toEqual([at('203.0.113.22')]);
  });

  test('takes anything for a table', () => {
    const hex = fc.stringMatching(/^[0-9A-F]{0,33}$/);
    const line = fc.tuple(hex, hex).map(([a, b]) => `0: ${a}:0016 ${b}:0001 01`);
    fc.assert(
      fc.property(fc.array(fc.oneof(line, fc.string())), fc.string(), (lines, connection) => {
        for (const { address } of parseSshClients(lines.join('\n'), connection)) expect(isIP(address)).not.toBe(0);
      }),
    );
  });
});

describe('gatherUnderlay', () => {
  const link = (given: Partial<ShownLink> & { name: string }, ...subnets: string[]): ShownLink => ({
    index: 7,
    mtu: 1500,
    up: true,
    carrier: true,
    loopback: false,
    alias: null,
    kind: null,
    master: null,
    lower: null,
    isTap: false,
    hasVirtioHeader: false,
    addresses: subnets.map((subnet) => ({
      address: subnet.split('/')[0] as Address,
      length: Number(subnet.split('/')[1]),
      subnet: maskPrefix(subnet),
    })),
    ...given,
  });
  const route = (prefix: string, given: Partial<ShownRoute>): ShownRoute => ({
    prefix: maskPrefix(prefix),
    table: 'main',
    protocol: 'dhcp',
    metric: 0,
    links: ['eth0'],
    gateways: [],
    mtu: null,
    tos: null,
    source: null,
    ...given,
  });
  const links = [
    link({ name: 'lo', loopback: true, mtu: 65536 }, '127.0.0.1/8'),
    link({ name: 'eth0' }, '192.0.2.10/24', 'fe80::2/64', '2001:db8::2/64'),
    link({ name: 'eth1', mtu: 1400, kind: 'veth' }, '198.51.100.2/30'),
    link({ name: 'cpn0', mtu: 1280 }, '10.77.0.5/24'),
  ];
  const gather = (...routes: ShownRoute[]) =>
    gatherUnderlay('cpn0', { links, routes, rules: [], refusing: [], throwRoutes: [] } satisfies ShownByIp);

  test('names the subnets of other links, but for loopback and link-local ones', () => {
    expect(gather().connected).toEqual([
      { prefix: '192.0.2.0/24', link: 'eth0' },
      { prefix: '2001:db8::/64', link: 'eth0' },
      { prefix: '198.51.100.0/30', link: 'eth1' },
    ]);
  });

  test('names the addresses outside our tunnels, but for loopback and link-local ones', () => {
    const another = link({ name: 'cpn1', alias: 'cpn:8' }, '10.78.0.5/24');
    const shown: ShownByIp = { links: [...links, another], routes: [], rules: [], refusing: [], throwRoutes: [] };
    expect(gatherUnderlay('cpn0', shown).addresses).toEqual(['192.0.2.10', '2001:db8::2', '198.51.100.2']);
  });

  test('names what another program routes elsewhere in the main table', () => {
    const { routed } = gather(
      route('10.0.0.0/8', { links: ['eth0', 'eth1'], metric: 600 }),
      route('10.9.0.0/16', { links: ['cpn0'] }),
      route('10.8.0.0/16', { table: '100' }),
      route('192.0.2.0/24', { protocol: 'kernel' }),
      route('0.0.0.0/0', {}),
    );
    expect(routed).toEqual([
      { prefix: '10.0.0.0/8', link: 'eth0', metric: 600, protocol: 'dhcp' },
      { prefix: '10.0.0.0/8', link: 'eth1', metric: 600, protocol: 'dhcp' },
    ]);
  });

  test('takes gateways and the smallest MTU from the default routes', () => {
    const gateway = (text: string) => [text as Address];
    const {
      gateways,
      uplinks,
      links: all,
      underlayMtu,
    } = gather(
      route('0.0.0.0/0', { gateways: gateway('192.0.2.1') }),
      route('0.0.0.0/0', { gateways: gateway('198.51.100.1'), links: ['eth1'] }),
      route('::/0', { gateways: gateway('fe80::1'), mtu: 1380 }),
      route('10.0.0.0/8', { gateways: gateway('192.0.2.7'), mtu: 600 }),
      route('0.0.0.0/0', { gateways: gateway('192.0.2.8'), table: '100', mtu: 600 }),
      route('0.0.0.0/0', { links: ['cpn0'] }),
      route('0.0.0.0/0', { links: ['cpn1'], table: '8349' }),
    );
    expect(gateways).toEqual(['192.0.2.1', '198.51.100.1', 'fe80::1']);
    expect(uplinks).toEqual(['eth0', 'eth1']);
    expect(all).toEqual([
      { name: 'eth0', kind: 'card', mtu: 1500 },
      { name: 'eth1', kind: 'other', mtu: 1400 },
    ]);
    expect(underlayMtu).toBe(1380);
  });

  test('names the uplinks of each family, and not those of the other', () => {
    const { uplinks, uplinks6 } = gather(
      route('0.0.0.0/0', {}),
      route('::/0', { links: ['eth1'] }),
      route('::/0', { links: ['cpn0'] }),
      route('::/0', { links: ['eth1'], metric: 9 }),
      route('::/0', { links: ['wlan0'], table: '100' }),
    );
    expect([uplinks, uplinks6]).toEqual([['eth0'], ['eth1']]);
  });

  test('names what is reached without a tunnel, but for default routes and every link of IPv6', () => {
    const { reached } = gather(
      route('192.0.2.0/24', { protocol: 'kernel' }),
      route('192.0.3.0/24', { protocol: 'kernel', table: '1001' }),
      route('10.8.0.0/16', { table: '100' }),
      route('10.0.0.0/8', { links: ['eth0', 'cpn0'] }),
      route('fe80::/64', { protocol: 'kernel' }),
      route('0.0.0.0/0', {}),
      route('::/0', {}),
    );
    expect(reached).toEqual(['192.0.2.0/24', '192.0.3.0/24', '10.0.0.0/8'].map((prefix) => ({ prefix, link: 'eth0' })));
  });

  test.each([
    [null, 'card'],
    ['bond', 'card'],
    ['team', 'card'],
    ['vlan', 'card'],
    ['ppp', 'card'],
    ['bridge', 'bridge'],
    ['veth', 'other'],
    ['wireguard', 'other'],
    ['tun', 'other'],
  ] as const)('an interface of kind %s is a %s', (kind, expected) => {
    const shown: ShownByIp = {
      links: [link({ name: 'if0', kind })],
      routes: [],
      rules: [],
      refusing: [],
      throwRoutes: [],
    };
    expect(gatherUnderlay('cpn0', shown).links.map((each) => each.kind)).toEqual([expected]);
  });

  test.each([
    ['a card', null, { up: true, carrier: true }, undefined],
    ['a card without a cable', null, { up: true, carrier: false }, true],
    ['a card that is down', null, { up: false, carrier: true }, true],
    ['a bridge without a member', 'bridge', { up: true, carrier: false }, undefined],
    ['a bridge that is down', 'bridge', { up: false, carrier: true }, true],
  ] as const)('%s is down or not', (_, kind, state, isDown) => {
    const links = [link({ name: 'if0', kind, ...state })];
    const [found] = gatherUnderlay('cpn0', { links, routes: [], rules: [], refusing: [], throwRoutes: [] }).links;
    expect(found?.isDown).toBe(isDown);
  });

  test('knows no MTU without a default route', () => {
    expect(gather(route('0.0.0.0/0', { links: ['cpn0'] })).underlayMtu).toBeNull();
  });
});

test.each([
  ['CapEff:\t000001ffffffffff', true],
  ['CapEff:\t0000000000001000', true],
  ['CapEff:\t0000000000000fff', false],
  ['CapPrm:\t000001ffffffffff\nCapEff:\t0000000000000000', false],
  ['', false],
])('of %j CAP_NET_ADMIN is %s', (status, expected) => {
  expect(mayAdminister(status)).toBe(expected);
});

test.each(['', '-h', 'all', 'default', 'interfaces', 'a b', 'a/b', '..', 'a\nb', 'a=b', 'abcdefghijklmnop', 'é'])(
  'no interface is called %j',
  (name) => {
    expect(() => parseLinkName(name)).toThrow(InvalidValue);
  },
);
