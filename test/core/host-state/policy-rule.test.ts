import { describe, expect, it } from 'vitest';
import {
  formatRule,
  isKernelRule,
  isNop,
  makeRule,
  type Rule,
  sameRule,
  sameWords,
} from '../../../src/core/host-state/policy-rule.ts';
import { prefix } from '../samples.ts';

const rule = makeRule(100, { fwmark: 0x1000_0000, mask: 0x1000_0000, table: '8349' });

describe('two policy rules', () => {
  it('are the same with another protocol, and not with another priority', () => {
    expect(sameRule(rule, { ...rule, protocol: 'boot' })).toBe(true);
    expect(sameRule(rule, { ...rule, priority: 101 })).toBe(false);
    expect(sameWords(rule, { ...rule, priority: 101, protocol: 'boot' })).toBe(true);
  });

  it.each<[string, Partial<Rule>]>([
    ['inversion', { not: true }],
    ['source', { from: prefix('10.0.0.0/8') }],
    ['destination', { to: prefix('10.0.0.0/8') }],
    ['mark', { fwmark: 1 }],
    ['mask', { mask: null }],
    ['table', { table: 'main' }],
    ['target', { table: null, goto: 200 }],
    ['suppressed length', { suppress: 0 }],
    ['further field', { more: ['iif'] }],
  ])('differ by their %s, in either order', (_, changes) => {
    const other = { ...rule, ...changes };
    expect([sameRule(rule, other), sameRule(other, rule)]).toEqual([false, false]);
    expect([sameWords(rule, other), sameWords(other, rule)]).toEqual([false, false]);
  });

  it('with further fields are never the same: their values are not read', () => {
    const limited = { ...rule, more: ['uidrange'] };
    expect(sameRule(limited, limited)).toBe(false);
  });
});

it('a policy rule is of the kernel by its protocol, or as the kernel adds it', () => {
  const local = makeRule(0, { table: '255' });
  const main = makeRule(32_766, { table: 'main' });
  const last = makeRule(32_767, { table: '253' });
  for (const each of [local, main, last]) expect(isKernelRule(each)).toBe(true);
  expect(isKernelRule({ ...rule, protocol: 'kernel' })).toBe(true);
  for (const each of [rule, { ...main, priority: 32_765 }, { ...main, suppress: 0 }, { ...local, more: ['iif'] }])
    expect(isKernelRule(each)).toBe(false);
});

it('a policy rule without table and target is a nop, unless it has fields that are not read', () => {
  const nop = makeRule(200, {});
  expect([nop, rule, makeRule(200, { goto: 300 }), { ...nop, more: ['unreachable'] }].map(isNop)).toEqual([
    true,
    false,
    false,
    false,
  ]);
});

it.each<[Partial<Rule>, text: string]>([
  [{}, 'from all nop'],
  [{ fwmark: 0x209d, not: true, table: '8349' }, 'not from all fwmark 0x209d lookup 8349'],
  [{ fwmark: 0x1000_0000, mask: 0x1000_0000, goto: 31_575 }, 'from all fwmark 0x10000000/0x10000000 goto 31575'],
  [
    { from: prefix('10.1.0.1/32'), to: prefix('10.2.0.0/16'), table: 'main', suppress: 0 },
    'from 10.1.0.1/32 to 10.2.0.0/16 lookup main suppress_prefixlength 0',
  ],
])('%j is written as ip rule prints it', (given, text) => expect(formatRule(makeRule(1, given))).toBe(text));
