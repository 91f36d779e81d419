import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CpnError, InvalidValue } from '../../../../src/core/errors/index.ts';
import { forwardRulesOf } from '../../../../src/core/forward/forward-rule.ts';
import { firewallMarks } from '../../../../src/core/forward/own-table.ts';
import type { Firewall } from '../../../../src/core/forward/packet-rule.ts';
import { parsePrefix } from '../../../../src/core/net/cidr.ts';
import { parseRules, parseTimeouts, renderFirewall, renderRemoval } from '../../../../src/host/linux/nft/own-table.ts';

const write = forwardRulesOf('cpn0.7-a');
const firewall: Firewall = {
  link: 'cpn0.7-a',
  rules: [
    write.masquerade({ from: [parsePrefix('10.77.0.0/24')], to: [parsePrefix('192.168.7.0/24')] }),
    write.masquerade({ from: [parsePrefix('fd77::/64')], to: [parsePrefix('fd07::/64')] }),
    write.clampMss('out'),
  ],
};

describe('renderFirewall', () => {
  test('replaces the table as a whole', () => {
    const text = renderFirewall(firewall);
    expect(text.replaceAll(/ [0-9a-f]{8}"/g, ' HASH"')).toBe(`add table inet cpn_cpn0.7-a
delete table inet cpn_cpn0.7-a
table inet cpn_cpn0.7-a {
  chain forward {
    type filter hook forward priority -150; policy accept;
    oifname "cpn0.7-a" tcp flags & (syn|rst) == syn tcp option maxseg size set rt mtu comment "cpn clamp-mss HASH"
  }
  chain postrouting {
    type nat hook postrouting priority 100; policy accept;
    ip saddr 10.77.0.0/24 ip daddr 192.168.7.0/24 oifname != "cpn0.7-a" ct mark set ct mark | 0x20000000 masquerade comment "cpn masquerade HASH"
    ip6 saddr fd77::/64 ip6 daddr fd07::/64 oifname != "cpn0.7-a" ct mark set ct mark | 0x20000000 masquerade comment "cpn masquerade HASH"
  }
}
`);
  });

  test('renders no chain without a rule, because a nat chain alone enables connection tracking', () => {
    expect(renderFirewall({ link: 'a', rules: [write.clampMss('out')] })).not.toContain('postrouting');
    expect(renderFirewall({ link: 'a', rules: [] })).toBe(`${renderRemoval('a')}table inet cpn_a {\n}\n`);
  });

  test('refuses a rule of two families', () => {
    const ends = { from: [parsePrefix('10.0.0.0/8')], to: [parsePrefix('fd00::/64')] };
    expect(() => write.masquerade(ends)).toThrow(InvalidValue);
  });
});

describe('firewallMarks', () => {
  test('differ with each part of a rule', () => {
    const marks = (link: string, to: string) =>
      firewallMarks({
        link,
        rules: [forwardRulesOf(link).masquerade({ from: [parsePrefix('10.77.0.0/24')], to: [parsePrefix(to)] })],
      });
    const all = [marks('a', '10.0.0.0/24'), marks('a', '10.0.1.0/24'), marks('b', '10.0.0.0/24')].flat();
    expect(new Set(all).size).toBe(3);
    expect(marks('a', '10.0.0.0/24')).toEqual(marks('a', '10.0.0.0/24'));
    for (const mark of all) expect(mark).toMatch(/^postrouting cpn masquerade [0-9a-f]{8}$/);
  });
});

test('parseTimeouts reads what is left of each element, in all forms that nft 1.0.6 prints', () => {
  const left = (val: string) => `{"elem": {"val": ${val}, "timeout": 20, "expires": 19}}`;
  const elements = [
    left('{"range": ["10.9.0.1", "10.9.0.6"]}'),
    left('{"prefix": {"addr": "192.168.60.0", "len": 24}}'),
    '{"elem": {"val": "10.77.0.2", "timeout": 20}}',
    '"10.1.1.1"',
  ];
  const text = `{"nftables": [{"set": {"name": "unexpired", "flags": ["interval", "timeout"], "elem": [${elements.join()}]}},
    {"set": {"name": "expiring", "flags": ["interval"], "elem": ["10.77.0.2"]}}, {"set": {"name": "valid", "flags": ["timeout"]}}]}`;
  expect(parseTimeouts(text)).toEqual({
    'unexpired 10.9.0.1': 19,
    'unexpired 192.168.60.0': 19,
    'unexpired 10.77.0.2': 0,
    'unexpired 10.1.1.1': Number.POSITIVE_INFINITY,
  });
});

describe('parseRules', () => {
  test('reads the comments of rules, and shows a rule that has none', () => {
    const text = `{"nftables": [{"metainfo": {"version": "1.0.6"}}, {"table": {"name": "cpn_a"}}, {"chain": {"name": "forward", "comment": "x"}},
      {"rule": {"family": "inet", "chain": "postrouting", "handle": 3, "comment": "cpn masquerade 1a2b3c4d", "expr": []}},
      {"rule": {"family": "inet", "chain": "forward", "handle": 4, "expr": [{"accept": null}]}}]}`;
    expect(parseRules(text)).toEqual(['forward (no comment)', 'postrouting cpn masquerade 1a2b3c4d']);
  });

  test('shows what disables correct rules: another policy, and a table with flags', () => {
    const rule = { rule: { chain: 'forward', comment: 'cpn a 1' } };
    const read = (...objects: object[]) => parseRules(JSON.stringify({ nftables: [...objects, rule] }));
    const chain = (policy?: string) => ({ chain: { name: 'forward', ...(policy && { policy }) } });
    expect(read({ table: { name: 'cpn_a' } }, chain('accept'), chain())).toEqual(['forward cpn a 1']);
    expect(read(chain('drop'))).toEqual(['forward (policy drop)', 'forward cpn a 1']);
    expect(read({ table: { name: 'cpn_a', flags: ['dormant'] } })).toEqual(['(table with flags)', 'forward cpn a 1']);
    expect(read({ table: { name: 'cpn_a', flags: 'cpn_a' } })).toEqual(['(table with flags)', 'forward cpn a 1']);
  });

  test.each(['', '[]', 'null', '{"nftables": 1}', 'x'])('refuses %j', (text) => {
    expect(() => parseRules(text)).toThrow(InvalidValue);
  });

  test('throws nothing but a CpnError', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.jsonValue(), (nftables, rule) => {
        try {
          parseRules(JSON.stringify({ nftables: [...nftables, { rule }] }));
        } catch (error) {
          expect(error).toBeInstanceOf(CpnError);
        }
      }),
    );
  });
});
