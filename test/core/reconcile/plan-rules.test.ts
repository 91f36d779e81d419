import { describe, expect, it } from 'vitest';
import { mainPriority, rulePriority, tunnelTable } from '../../../src/core/host-state/marks.ts';
import type { Rule } from '../../../src/core/host-state/policy-rule.ts';
import { planRules } from '../../../src/core/reconcile/plan-rules.ts';
import { strictRules } from '../../../src/core/routing/strict-rules.ts';
import { mainRule, tunnelRule, tunnelRules } from '../../../src/core/routing/tunnel-rules.ts';
import { prefix, usualConstraints } from '../samples.ts';

const rules = tunnelRules(usualConstraints, false);
const exit = { prefix: prefix('0.0.0.0/0'), table: tunnelTable, protocol: '157', metric: 0 };
/** The two rules of wg-quick, the one for the tunnel with this priority. */
const quickAt = (priority: number): Rule[] => [
  { ...tunnelRule, priority, protocol: '0' },
  { ...mainRule, priority: priority - 1, protocol: '0' },
];
const planned = (wanted: readonly Rule[], present: readonly Rule[]) =>
  planRules({ rules: wanted }, { routes: [exit], rules: present }).map(([command]) => command);
const isKept = (wanted: readonly Rule[], quick: readonly Rule[]) =>
  !planned(wanted, quick).some((command) => 'remove' in command);

describe('the rules that wg-quick added', () => {
  it.each([
    ['behind those for what stays outside', rulePriority.resolver + 2, true],
    ['just before the main table', mainPriority - 1, true],
    ['before those for what stays outside', rulePriority.resolver + 1, false],
    ['behind the main table, where they lead nothing into the tunnel', mainPriority + 10, false],
  ])('stay in place of ours only where they have the same effect: %s', (_, priority, stays) => {
    expect(isKept(rules, quickAt(priority))).toBe(stays);
    const adds = (rule: Rule) => planned(rules, quickAt(priority)).some((each) => 'rule' in each && each.rule === rule);
    expect([adds(mainRule), adds(tunnelRule)]).toEqual([!stays, !stays]);
  });

  it('go where ours are in place, and where the tunnel is strict', () => {
    const quick = quickAt(32_765);
    expect(isKept(rules, [...rules, ...quick])).toBe(false);
    const strict = strictRules(rules, { prefixes: [prefix('203.0.113.0/24')], tables: [] });
    expect(isKept(strict, quick)).toBe(false);
    expect(isKept([], quick)).toBe(false);
  });

  it('are not this network’s to remove where it has neither rules nor a route in their table', () => {
    expect(planRules({ rules: [] }, { routes: [], rules: quickAt(32_765) })).toEqual([]);
  });
});
