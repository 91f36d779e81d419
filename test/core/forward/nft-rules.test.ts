import { describe, expect, it, test } from 'vitest';
import { InvalidValue } from '../../../src/core/errors/index.ts';
import type { FirewallRule } from '../../../src/core/forward/firewall-rule.ts';
import {
  boundsForwarding,
  firewallMarks,
  hasTable,
  isLoaded,
  packetRules,
  unreadable,
  withoutTool,
} from '../../../src/core/forward/nft-rules.ts';
import { returnPathRules } from '../../../src/core/forward/return-path-rules.ts';
import { address, prefix } from '../samples.ts';

const write = (rule: FirewallRule) => packetRules({ link: 'cpn0', rules: [rule] })[0]?.text;
const inward = (from: string, to: string): FirewallRule => ({
  rule: 'accept-inward',
  from: [prefix(from)],
  to: [prefix(to)],
});

describe('a packet rule', () => {
  it('is written in the family of its addresses', () => {
    expect(write(inward('10.77.0.0/24', '192.168.50.0/24'))).toBe(
      'iifname "cpn0" ip saddr 10.77.0.0/24 ip daddr 192.168.50.0/24 accept',
    );
    expect(write(inward('fd00::/64', 'fd01::/64'))).toBe(
      'iifname "cpn0" ip6 saddr fd00::/64 ip6 daddr fd01::/64 accept',
    );
    expect(write({ rule: 'accept-published', at: address('fd00::1') })).toContain('ct original ip6 daddr fd00::1');
  });

  it('marks connections that began outside a full tunnel, and not those to the address in it', () => {
    const [own, range] = [address('10.77.0.2'), prefix('10.77.0.0/24')];
    const rules = packetRules({ link: 'cpn0', rules: returnPathRules(own, range) });
    const begun = 'iifname != { "lo", "cpn0" } ct direction original ct original ip daddr != 10.77.0.2';
    expect(rules.map(({ chain, text }) => [chain, text])).toEqual([
      [
        'returning',
        expect.stringMatching(/^ct mark & 0x10000000 == 0x10000000 meta mark & 0x30ff == 0x0 meta mark set/),
      ],
      ['returning', expect.stringContaining(`${begun} fib daddr type local`)],
      ['returning', expect.stringContaining(`${begun} ct status dnat fib daddr oifname != "cpn0"`)],
      ['returning', expect.stringContaining(`${begun} ct status dnat ip daddr 10.77.0.0/24`)],
      ['answering', `oifname "cpn0" ${rules[0]?.text}`],
    ]);
    expect(returnPathRules(address('fd00::2'), prefix('fd00::/64'))).toEqual([]);
    const marks = firewallMarks({ link: 'cpn0', rules: returnPathRules(own, range) });
    expect(boundsForwarding({ firewall: marks })).toBe(false);
  });

  test.each<[string, FirewallRule, string]>([
    ['no interface', { rule: 'refuse-outside', by: [] }, 'names no interface'],
    ['a name that would end the string', { rule: 'refuse-outside', by: ['eth0', 'eth1" accept #'] }, 'no name of an'],
    ['a name of two lines', { rule: 'refuse-outside', by: ['eth0\naccept'] }, 'no name of an interface'],
    ['no address range', { rule: 'refuse-spoofed', from: [] }, 'names no address range'],
    ['two families', inward('10.77.0.0/24', 'fd01::/64'), 'mixes IPv4 and IPv6'],
  ])('is not written with %s', (_, rule, why) => {
    expect(() => write(rule)).toThrow(InvalidValue);
    expect(() => write(rule)).toThrow(why);
  });
});

describe('a table of ours', () => {
  const firewall = { link: 'cpn0', rules: [{ rule: 'refuse-rest' }, { rule: 'clamp-mss', direction: 'out' }] as const };
  const marks = firewallMarks(firewall);

  it('counts as present unless its absence is certain', () => {
    const there = [null, [withoutTool], [unreadable], [], marks].map((each) => hasTable({ firewall: each }));
    expect(there).toEqual([false, false, true, true, true]);
  });

  it('is loaded when it has exactly these rules, in these chains', () => {
    const loaded = (each: readonly string[] | null) => isLoaded(firewall, { firewall: each });
    expect(marks.map((mark) => mark.replace(/ \w+$/, ''))).toEqual([
      'forward cpn clamp-mss',
      'forward cpn refuse-rest',
    ]);
    expect([loaded(marks), loaded(marks.toReversed())]).toEqual([true, true]);
    expect([null, [], marks.slice(1), [...marks, 'forward other']].map(loaded)).toEqual([false, false, false, false]);
  });
});
