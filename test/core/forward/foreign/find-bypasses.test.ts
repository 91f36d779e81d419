import { expect, it } from 'vitest';
import type { FilterRule, FilterTable, RuleCondition } from '../../../../src/core/forward/foreign/chain.ts';
import { describeBypass } from '../../../../src/core/forward/foreign/describe-drop.ts';
import { findBypasses } from '../../../../src/core/forward/foreign/find-bypasses.ts';
import { rangeOf } from '../../../../src/core/net/cidr.ts';
import { prefix } from '../../samples.ts';

const inside = ['10.77.0.0/24', '192.168.50.0/24'].map(prefix);
const dns: RuleCondition = { on: 'port', not: false, ranges: [{ first: 53, last: 53 }] };
const by = (on: 'iif' | 'oif', name: string, not = false): RuleCondition => ({ on, not, names: [name] });
const end = (on: 'from' | 'to', text: string): RuleCondition => ({ on, not: false, ranges: [rangeOf(prefix(text))] });

function find(
  conditions: readonly RuleCondition[],
  changes: Partial<FilterTable> = {},
  rule: Partial<FilterRule> = {},
) {
  const rules: FilterRule[] = [{ conditions, verdict: { does: 'none' }, effect: 'untracks', ...rule }];
  const chain = { name: 'PREROUTING', hook: 'prerouting', priority: -300, policy: 'accept', rules } as const;
  const table: FilterTable = { family: 'ip', name: 'raw', chains: new Map([['PREROUTING', chain]]), ...changes };
  return findBypasses([table], 'cpn0', inside).map(describeBypass);
}

it.each<[string, readonly RuleCondition[], number]>([
  ['of a port', [dns], 1],
  ['of the tunnel', [by('iif', 'cpn0')], 1],
  ['toward the tunnel', [by('oif', 'cpn0')], 1],
  ['of a LAN of the network', [end('from', '192.168.50.0/24')], 1],
  ['between a LAN and the network', [end('from', '192.168.0.0/16'), end('to', '10.0.0.0/8')], 1],
  ['of another interface', [by('iif', 'eth0'), by('oif', 'eth1')], 0],
  ['of all interfaces but the tunnel', [by('iif', 'cpn0', true), by('oif', 'cpn0', true)], 0],
  ['to an address outside', [end('to', '169.254.20.10/32'), dns], 0],
  ['from an address outside', [end('from', '169.254.20.10/32')], 0],
])('untracked packets %s are found, or not', (_, conditions, count) => {
  expect(find(conditions)).toHaveLength(count);
});

it('the table and the effect are named, once for each table', () => {
  expect(find([dns])).toEqual([
    'nft table ip raw (chain PREROUTING) may leave packets of the tunnel untracked: such a connection is refused, also if a rule allows it',
  ]);
  expect(find([], { isLegacy: true })[0]).toMatch(/^table raw of iptables-legacy /);
  expect(find([], {}, { effect: 'offloads' })).toEqual([
    'nft table ip raw (chain PREROUTING) puts connections of the tunnel into a flowtable: they go on after their rule has gone',
  ]);
  expect(find([], { family: 'inet', name: 'cpn_cpn1' })).toEqual([]);
});
