import { describe, expect, it, test } from 'vitest';
import { InvalidValue } from '../../../src/core/errors/index.ts';
import { forwardRulesOf } from '../../../src/core/forward/forward-rule.ts';
import {
  boundsForwarding,
  firewallMarks,
  hasTable,
  isLoaded,
  rejectsIpv6,
  unreadable,
  withoutTool,
} from '../../../src/core/forward/own-table.ts';
import { type Chain, chains, commentOf } from '../../../src/core/forward/packet-rule.ts';
import { returnPathRules } from '../../../src/core/forward/return-path-rules.ts';
import { address, prefix } from '../samples.ts';

const write = forwardRulesOf('cpn0');
const inward = (from: string, to: string) => write.acceptInward({ from: [prefix(from)], to: [prefix(to)] }).text;

describe('a packet rule', () => {
  it('is written in the family of its addresses', () => {
    expect(inward('10.77.0.0/24', '192.168.50.0/24')).toBe(
      'iifname "cpn0" ip saddr 10.77.0.0/24 ip daddr 192.168.50.0/24 accept',
    );
    expect(inward('fd00::/64', 'fd01::/64')).toBe('iifname "cpn0" ip6 saddr fd00::/64 ip6 daddr fd01::/64 accept');
    expect(write.acceptPublished(address('fd00::1')).text).toContain('ct original ip6 daddr fd00::1');
  });

  it('marks connections that began outside a full tunnel, and not those to the address in it', () => {
    const [own, range] = [address('10.77.0.2'), prefix('10.77.0.0/24')];
    const rules = returnPathRules('cpn0', own, range);
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
    expect(returnPathRules('cpn0', address('fd00::2'), prefix('fd00::/64'))).toEqual([]);
    const marks = firewallMarks({ link: 'cpn0', rules });
    expect(boundsForwarding({ firewall: marks })).toBe(false);
  });

  test.each<[string, () => unknown, string]>([
    ['no interface', () => write.refuseOutside([]), 'names no interface'],
    ['a name that would end the string', () => write.refuseOutside(['eth0', 'eth1" accept #']), 'no name of an'],
    ['a name of two lines', () => write.refuseOutside(['eth0\naccept']), 'no name of an interface'],
    ['no address range', () => write.refuseSpoofed([]), 'names no address range'],
    ['two families', () => inward('10.77.0.0/24', 'fd01::/64'), 'mixes IPv4 and IPv6'],
  ])('is not written with %s', (_, writes, why) => {
    expect(writes).toThrow(InvalidValue);
    expect(writes).toThrow(why);
  });
});

describe('a table of ours', () => {
  const firewall = { link: 'cpn0', rules: [write.refuseRest(), write.clampMss('out')] };
  const marks = firewallMarks(firewall);

  it('counts as present unless its absence is certain', () => {
    const there = [null, [withoutTool], [unreadable], [], marks].map((each) => hasTable({ firewall: each }));
    expect(there).toEqual([false, false, true, true, true]);
  });

  it.each(Object.keys(chains) as Chain[])('shows by its rules what it limits: %s', (chain) => {
    const firewall = firewallMarks({ link: 'cpn0', rules: [{ name: 'any', chain, text: 'drop' }] });
    expect(boundsForwarding({ firewall })).toBe(['forward', 'postrouting', 'leaving'].includes(chain));
    expect(rejectsIpv6({ firewall })).toBe(chain === 'outgoing');
  });

  it('that cannot be read may limit everything, and one that is not there nothing', () => {
    const limits = [boundsForwarding, rejectsIpv6];
    expect(limits.map((is) => is({ firewall: [unreadable] }))).toEqual([true, true]);
    for (const firewall of [null, []]) expect(limits.map((is) => is({ firewall }))).toEqual([false, false]);
  });

  it('has another comment for the same text in another chain', () => {
    const comments = (Object.keys(chains) as Chain[]).map((chain) => commentOf({ name: 'any', chain, text: 'drop' }));
    expect(new Set(comments).size).toBe(comments.length);
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
