import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isFirewallLossReport, parseFirewallEvent } from '../../../../src/host/linux/monitor/parse-firewall-event.ts';

/** Printed by `nft monitor ruleset` of nftables 1.0.6, with what is to be read from it. */
const recorded: readonly [string, string, boolean][] = [
  ['add table inet cpn_cpn0', 'cpn0', false],
  ['add table inet cpn_cpn0 { flags dormant; }', 'cpn0', false],
  ['add chain inet cpn_cpn0 forward { type filter hook forward priority mangle; policy drop; }', 'cpn0', false],
  [
    'add rule inet cpn_cpn0 forward oifname "cpn0" tcp flags syn / syn,rst tcp option maxseg size set rt mtu comment "cpn clamp-mss 01234567"',
    'cpn0',
    false,
  ],
  ['add set inet cpn_cpn0 bb { type ipv4_addr; } ', 'cpn0', false],
  ['add element inet cpn_cpn0 bb { 1.2.3.4 }', 'cpn0', false],
  ['add counter inet cpn_cpn0 cc { packets 0 bytes 0 } ', 'cpn0', false],
  ['delete rule inet cpn_wg0.1 forward handle 3', 'wg0.1', true],
  ['delete chain inet cpn_cpn0 postrouting', 'cpn0', true],
  ['delete table inet cpn_wg-x', 'wg-x', true],
  ['delete table inet cpn_a_b', 'a_b', true],
];

describe('parseFirewallEvent', () => {
  test.each(recorded)('reads %j', (line, link, removed) => {
    expect(parseFirewallEvent(line)).toEqual({ kind: 'firewall', link, removed });
  });

  test.each([
    '',
    '# new generation 2 by process 24427 (nft)',
    'add table ip cpn_cpn0',
    'add chain ip nat cpn_cpn0',
    'add rule ip nat DOCKER oifname "inet cpn_cpn0" drop',
    'add rule inet filter DOCKER ip daddr 1.2.3.4 drop comment "add table inet cpn_cpn0"',
    'add rule inet filter cpn_cpn0 drop',
    'add chain ip filter FORWARD { }',
    'add chain inet home output { type filter hook output priority filter; policy drop; }',
    'add chain inet home pre { type filter hook prerouting priority raw; comment "{ type filter hook forward " }',
    'add chain bridge home forward { type filter hook forward priority filter; policy drop; }',
    'add rule ip filter FORWARD counter packets 0 bytes 0 jump DOCKER-USER',
    'delete chain ip filter DOCKER',
    'delete table ip6 filter',
    'table inet cpn_cpn0 {',
  ])('ignores %j', (line) => {
    expect(parseFirewallEvent(line)).toBeNull();
  });

  test.each([
    ['add chain ip filter FORWARD { type filter hook forward priority filter; policy drop; }', false],
    ['add chain ip filter INPUT { type filter hook input priority filter; policy drop; }', false],
    ['add chain inet e c { type filter hook forward priority filter - 5; policy accept; }', false],
    ['delete table ip filter', true],
    ['delete table ip cpn_cpn0', true],
    ['delete table inet cpn_', true],
    ['delete table inet cpn', true],
    ['delete table inet cpn_of_another_program', true],
    ['delete table inet xcpn_cpn0', true],
  ])('takes %j for a change by another program', (line, removed) => {
    expect(parseFirewallEvent(line)).toEqual({ kind: 'firewall', link: null, removed });
  });

  test('detects the report of a loss', () => {
    const line = '# ERROR: We lost some netlink events!';
    expect([isFirewallLossReport(line), parseFirewallEvent(line)]).toEqual([true, null]);
    expect(recorded.filter(([each]) => isFirewallLossReport(each))).toEqual([]);
  });

  test('parses any line', () => {
    const part = fc.constantFrom(...recorded.flatMap(([line]) => line.split(/(?<=[ _])/)), '\t', '🦀', '\u{1b}[31m');
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        expect(parseFirewallEvent(parts.join(''))?.link ?? 'v0').toMatch(/^[\w.-]{1,15}$/);
      }),
    );
  });
});
