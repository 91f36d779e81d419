import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isLossReport, parseEvent } from '../../../../src/host/linux/monitor/parse-event.ts';

/** Printed by iproute2 6.1.0, with what is to be read from it. */
const recorded: readonly [string, ...unknown[]][] = [
  [
    '3: v0@v1: <BROADCAST,MULTICAST,M-DOWN> mtu 1500 qdisc noop state DOWN group default \\    link/ether 36:b8:cb:65:fd:2d brd ff:ff:ff:ff:ff:ff',
    'link',
    'v0',
    false,
  ],
  [
    '7: tun0: <POINTOPOINT,MULTICAST,NOARP> mtu 1500 qdisc noop state DOWN group default \\    link/none ',
    'link',
    'tun0',
    false,
  ],
  [
    'Deleted 3: w0@NONE: <BROADCAST,MULTICAST> mtu 1400 qdisc noop state DOWN group default \\    link/ether 36:b8:cb:65:fd:2d brd ff:ff:ff:ff:ff:ff',
    'link',
    'w0',
    true,
  ],
  // From the bridge, which the link leaves while it stays.
  [
    'Deleted 2: v1@NONE: <BROADCAST,MULTICAST> mtu 1500 master br0 state DOWN \\    link/ether 06:28:52:8f:1e:74',
    'link',
    'v1',
    false,
  ],
  [
    '4: Deleted@NONE: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN group default \\    link/ether 2a:14:80:39:38:d1 brd ff:ff:ff:ff:ff:ff',
    'link',
    'Deleted',
    false,
  ],
  [
    '5: rule]@Deleted: <BROADCAST,MULTICAST,M-DOWN> mtu 1500 qdisc noop state DOWN group default \\    link/ether 46:11:3b:9f:89:ea brd ff:ff:ff:ff:ff:ff',
    'link',
    'rule]',
    false,
  ],
  ['3: v0    inet 10.1.0.1/24 scope global v0\\       valid_lft forever preferred_lft forever', 'address', 'v0', false],
  [
    '3: v0    inet 10.5.0.1 peer 10.5.0.2/32 scope global v0\\       valid_lft forever preferred_lft forever',
    'address',
    'v0',
    false,
  ],
  [
    'Deleted 3: v0    inet6 fd01::1/64 scope global nodad \\       valid_lft forever preferred_lft forever',
    'address',
    'v0',
    true,
  ],
  ['10.9.0.0/16 via 10.1.0.2 dev v0 ', 'route', 'v0', false],
  ['local 10.1.0.1 dev v0 table local proto kernel scope host src 10.1.0.1 ', 'route', 'v0', false],
  ['default dev v0 scope link ', 'route', 'v0', false],
  ['fd04::/64 dev v0 table 77 metric 1024 pref medium', 'route', 'v0', false],
  ['multicast ff00::/8 dev v1 table local proto kernel metric 256 pref medium', 'route', 'v1', false],
  ['unreachable fd05::/64 dev lo metric 1024 pref medium', 'route', 'lo', false],
  ['blackhole 10.11.0.0/16 ', 'route', null, false],
  ['10.10.0.0/16 \\\tnexthop dev v0 weight 1 \\\tnexthop dev v1 weight 1 ', 'route', null, false],
  ['Deleted default dev v0 metric 1024 pref medium', 'route', 'v0', true],
  ['Deleted broadcast 10.1.0.255 dev v0 table local proto kernel scope link src 10.1.0.1 ', 'route', 'v0', true],
  ['32765:\tfrom all fwmark 0x5 lookup 77', 'rule', null, false],
  ['32765:\tnot from all fwmark 0x5 lookup 77', 'rule', null, false],
  ['Deleted 32764:\tfrom all iif v0 lookup 77', 'rule', null, true],
  ['inet all forwarding on ', 'sysctl', null, false],
  ['inet default forwarding off ', 'sysctl', null, false],
  ['inet v0 forwarding on ', 'sysctl', 'v0', false],
  ['inet a.100 forwarding off ', 'sysctl', 'a.100', false],
  ['inet6 default forwarding on ', 'sysctl', null, false],
  ['inet6 all forwarding on ', 'sysctl', null, false],
  ['inet v0 rp_filter loose ', 'sysctl', 'v0', false],
  ['inet a.100 rp_filter off ', 'sysctl', 'a.100', false],
  ['inet v0 rp_filter strict ', 'sysctl', 'v0', false],
  ['ipv6 dev eth0 forwarding off ', 'sysctl', 'eth0', false],
  // As older versions spell it.
  ['ipv4 all forwarding off ', 'sysctl', null, false],
  ['ipv4 dev eth0 forwarding on ', 'sysctl', 'eth0', false],
];

describe('parseEvent', () => {
  test.each(recorded)('reads %j', (line, kind, link, removed) => {
    expect(parseEvent(line)).toMatchObject({ kind, link, removed });
  });

  test('marks a default route', () => {
    const known = recorded.filter(([line]) => parseEvent(line)?.isDefault);
    expect(known.map(([line]) => line)).toEqual([
      'default dev v0 scope link ',
      'Deleted default dev v0 metric 1024 pref medium',
    ]);
  });

  test('detects the report of a loss', () => {
    const line = 'netlink receive error No buffer space available (105)';
    expect([isLossReport(line), parseEvent(line)]).toEqual([true, null]);
    expect(recorded.filter(([each]) => isLossReport(each))).toEqual([]);
  });

  test.each([
    '',
    'Deleted ',
    'Deleted 3: x: y',
    '    link/ether 36:b8:cb:65:fd:2d brd ff:ff:ff:ff:ff:ff',
    'Cannot open netlink socket: Permission denied',
    'Unknown message: type=0x00000068(104) flags=0x00000000(0) len=0x00000020(32)',
    '3: 4 dev v0 ',
    'inet v1 forwarding off rp_filter off mc_forwarding off proxy_neigh off ignore_routes_with_linkdown off ',
    'inet a.100 forwarding off rp_filter off mc_forwarding off proxy_neigh off ignore_routes_with_linkdown off ',
    'inet all rp_filter strict ',
    'inet all proxy_neigh on ',
    'inet default rp_filter loose ',
    'Deleted inet v0 ',
    'Deleted inet6 fd0.1 ',
  ])('ignores %j', (line) => {
    expect(parseEvent(line)).toBeNull();
  });

  test('returns a name without control characters, and only up to an @', () => {
    expect(parseEvent('3: \u{1b}[31m@v1: <UP> mtu 1 qdisc noop state UP')?.link).toBe('\u{fffd}[31m');
    expect(parseEvent('3: x@y@NONE: <UP> mtu 1 qdisc noop state UP')?.link).toBe('x');
    expect(parseEvent('10.0.0.0/8 dev dev scope link ')?.link).toBe('dev');
  });

  test('parses any line', () => {
    const part = fc.constantFrom(...recorded.flatMap(([line]) => line.split(/(?<=[ :@])/)), '\t', 'dev ', '@', '🦀');
    const line = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(part, { maxLength: 30 }).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(line, (text) => {
        const event = parseEvent(text);
        expect(event?.link ?? 'v0').toMatch(/^[^\s\p{Cc}]+$/u);
      }),
    );
  });

  test('parses a line of maximum length fast', () => {
    for (const unit of ['@', '1', 'a', 'f:', '3: ', ' dev @', 'Deleted ']) {
      parseEvent(unit.repeat(65_536));
      parseEvent(`3: ${unit.repeat(65_536)}`);
      parseEvent(`10.0.0.0/8 ${unit.repeat(65_536)}`);
    }
  });
});
