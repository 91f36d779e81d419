import { describe, expect, it } from 'vitest';
import { mainPriority } from '../../../src/core/host-state/marks.ts';
import { makeRule, type Rule } from '../../../src/core/host-state/policy-rule.ts';
import { isTableUsed } from '../../../src/core/routing/route-table.ts';
import { areStrict, isKeptOut } from '../../../src/core/routing/strict-rules.ts';
import { mainRule, tunnelRule } from '../../../src/core/routing/tunnel-rules.ts';
import { address, prefix } from '../samples.ts';

const one = prefix('198.51.100.7/32');

describe('a routing table', () => {
  const rule = makeRule(31_471, { table: '8350' });

  it.each<[string, Partial<Rule>, boolean]>([
    ['all packets', {}, true],
    ['all packets, by any program', { protocol: 'static' }, true],
    ['all packets, just before the main table', { priority: mainPriority - 1 }, true],
    ['all packets behind the main table', { priority: mainPriority }, false],
    ['packets to another table', { table: '8351' }, false],
    ['packets from one address', { from: one }, false],
    ['packets to one address', { to: one }, false],
    ['marked packets', { fwmark: 1 }, false],
    ['all but some packets', { not: true }, false],
    ['packets of one user', { more: ['uidrange'] }, false],
  ])('is in use by a rule that leads %s to it', (_, changes, isUsed) => {
    expect(isTableUsed('8350', [{ ...rule, ...changes }])).toBe(isUsed);
    expect(isTableUsed('8350', [{ ...rule, ...changes }, rule])).toBe(true);
  });
});

describe('the rules of a full tunnel', () => {
  const [to, other] = [address('198.51.100.7'), address('198.51.100.8')];

  it.each<[string, Rule, boolean]>([
    ['to behind the tunnel', makeRule(1, { to: one, goto: 9 }), true],
    ['to the main table', makeRule(1, { to: one, table: 'main', suppress: 0 }), true],
    ['to another table', makeRule(1, { to: one, table: '8350' }), false],
    ['of a source', makeRule(1, { from: one, goto: 9 }), false],
    ['of all addresses', mainRule, false],
  ])('keep an address out that a rule leads %s', (_, rule, isOut) => {
    expect([isKeptOut(to, [rule, tunnelRule]), isKeptOut(other, [rule, tunnelRule])]).toEqual([isOut, false]);
  });

  it('are strict without the rule for the whole main table, and none are no strict ones', () => {
    expect([areStrict([]), areStrict([tunnelRule]), areStrict([tunnelRule, mainRule])]).toEqual([false, true, false]);
  });
});
