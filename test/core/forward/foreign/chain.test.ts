import { describe, expect, it } from 'vitest';
import {
  evaluateRule,
  type FilterChain,
  type FilterRule,
  isAboutPath,
  isDropping,
  pathAt,
  type RuleCondition,
  type RuleVerdict,
} from '../../../../src/core/forward/foreign/chain.ts';
import type { PacketPath } from '../../../../src/core/forward/foreign/path.ts';
import { rangeOf } from '../../../../src/core/net/cidr.ts';
import { prefix } from '../../samples.ts';

const path: PacketPath = {
  ...{ iif: 'cpn0', oif: 'eth1', from: prefix('10.77.0.0/24'), to: prefix('192.168.50.0/24') },
  ...{ state: 'new', port: 51820, isRedirected: false },
};
const unknown: PacketPath = { iif: null, oif: null, from: path.from, to: path.to, state: 'new' };
const accept: RuleVerdict = { does: 'accept' };
const rule = (condition: RuleCondition, verdict: RuleVerdict = accept): FilterRule => ({
  conditions: [condition],
  verdict,
});
const ranges = (...texts: string[]) => texts.map((text) => rangeOf(prefix(text)));
const ports = (first: number, last = first) => [{ first, last }];
const set = { kind: 'set', family: 'ip', table: 'filter', name: 'lan' } as const;

describe('a condition', () => {
  it.each<[string, RuleCondition & { readonly not: boolean }, PacketPath, 'yes' | 'no' | 'maybe']>([
    ['the interface', { on: 'iif', not: false, names: ['eth0', 'cpn0'] }, path, 'yes'],
    ['a beginning of it', { on: 'iif', not: false, names: ['cpn*'] }, path, 'yes'],
    ['another beginning', { on: 'oif', not: false, names: ['cpn*'] }, path, 'no'],
    ['a longer name', { on: 'iif', not: false, names: ['cpn01'] }, path, 'no'],
    ['an interface that is not known', { on: 'oif', not: false, names: ['eth1'] }, unknown, 'maybe'],
    ['the whole range', { on: 'to', not: false, ranges: ranges('192.168.0.0/16') }, path, 'yes'],
    ['exactly the range', { on: 'from', not: false, ranges: ranges('10.77.0.0/24') }, path, 'yes'],
    ['the first address of it', { on: 'to', not: false, ranges: ranges('192.168.50.0/32') }, path, 'maybe'],
    ['the last address of it', { on: 'to', not: false, ranges: ranges('192.168.50.255/32') }, path, 'maybe'],
    ['the range before it', { on: 'to', not: false, ranges: ranges('192.168.49.0/24') }, path, 'no'],
    ['the range behind it', { on: 'to', not: false, ranges: ranges('192.168.51.0/24') }, path, 'no'],
    ['its state', { on: 'state', not: false, states: ['new', 'established'] }, path, 'yes'],
    ['another state', { on: 'state', not: false, states: ['established'] }, path, 'no'],
    ['no connection', { on: 'state', not: false, states: ['invalid'] }, { ...path, isUntracked: true }, 'yes'],
    [
      'its state before there is one',
      { on: 'state', not: false, states: ['new'] },
      { ...path, isUntracked: true },
      'no',
    ],
    ['UDP', { on: 'protocol', not: false, names: ['tcp', 'udp'] }, path, 'yes'],
    ['TCP', { on: 'protocol', not: false, names: ['tcp'] }, path, 'no'],
    ['a protocol of any packets', { on: 'protocol', not: false, names: ['udp'] }, unknown, 'maybe'],
    ['the port', { on: 'port', not: false, ranges: ports(51820) }, path, 'yes'],
    ['ports up to it', { on: 'port', not: false, ranges: ports(51000, 51820) }, path, 'yes'],
    ['ports from it on', { on: 'port', not: false, ranges: ports(51820, 52000) }, path, 'yes'],
    ['ports before it', { on: 'port', not: false, ranges: ports(51000, 51819) }, path, 'no'],
    ['ports behind it', { on: 'port', not: false, ranges: ports(51821, 52000) }, path, 'no'],
    ['a port of any packets', { on: 'port', not: false, ranges: ports(51820) }, unknown, 'maybe'],
    ['a redirection', { on: 'redirected', not: false }, path, 'no'],
    ['a redirection that is not known', { on: 'redirected', not: false }, unknown, 'maybe'],
  ])('on %s matches, and its opposite matches the rest', (_, condition, of, answer) => {
    expect(evaluateRule(rule(condition), of)).toBe(answer);
    const opposite = { yes: 'no', no: 'yes', maybe: 'maybe' }[answer];
    expect(evaluateRule(rule({ ...condition, not: true } as RuleCondition), of)).toBe(opposite);
  });

  it.each<[string, RuleCondition, RuleVerdict['does'], PacketPath, string]>([
    ['nothing', { on: 'nothing' }, 'accept', path, 'no'],
    ['what is unknown', { on: 'unknown' }, 'drop', path, 'maybe'],
    ['a set that was not read', { on: 'unread', set, end: 'to' }, 'drop', path, 'maybe'],
    ['some state, to accept a reply', { on: 'some state' }, 'accept', { ...path, state: 'established' }, 'yes'],
    ['some state, to accept a first packet', { on: 'some state' }, 'accept', path, 'maybe'],
    ['some state, to drop a reply', { on: 'some state' }, 'drop', { ...path, state: 'established' }, 'maybe'],
    [
      'some state, before there is one',
      { on: 'some state' },
      'accept',
      { ...path, state: 'established', isUntracked: true },
      'maybe',
    ],
  ])('on %s is judged with its verdict', (_, condition, does, of, answer) => {
    expect(evaluateRule(rule(condition, { does } as RuleVerdict), of)).toBe(answer);
  });

  it('that matches nothing outdoes one that may match', () => {
    for (const conditions of [
      [{ on: 'unknown' }, { on: 'nothing' }],
      [{ on: 'nothing' }, { on: 'unknown' }],
    ] as const)
      expect(evaluateRule({ conditions, verdict: accept }, path)).toBe('no');
    expect(evaluateRule({ conditions: [], verdict: accept }, path)).toBe('yes');
  });
});

it.each(['accept', 'drop', 'reject', 'return', 'none', 'unknown'] as const)('a verdict drops, or not: %s', (does) => {
  expect(isDropping({ does })).toBe(does === 'drop' || does === 'reject');
});

describe('a rule was written for the path', () => {
  it.each<[string, RuleCondition, boolean]>([
    ['that names the tunnel', { on: 'iif', not: false, names: ['cpn0'] }, true],
    ['that names the tunnel as the exception', { on: 'oif', not: true, names: ['cpn0'] }, false],
    ['that names another interface', { on: 'oif', not: false, names: ['eth1'] }, false],
    ['that names an end', { on: 'to', not: false, ranges: ranges('192.168.50.0/24') }, true],
    ['that names a part of an end', { on: 'from', not: false, ranges: ranges('10.77.0.9/32') }, true],
    ['that names an end as the exception', { on: 'from', not: true, ranges: ranges('10.77.0.9/32') }, false],
    ['that names more than an end', { on: 'to', not: false, ranges: ranges('192.168.0.0/16') }, false],
    ['of a state', { on: 'state', not: false, states: ['new'] }, false],
  ])('%s, or not', (_, condition, isAbout) => expect(isAboutPath(rule(condition), path, 'cpn0')).toBe(isAbout));

  it('by no part of a default route', () => {
    const named = rule({ on: 'to', not: false, ranges: ranges('192.168.50.0/24') });
    for (const to of ['0.0.0.0/0', '128.0.0.0/1'].map(prefix))
      expect(isAboutPath(named, { ...path, to }, 'cpn0')).toBe(false);
  });
});

describe('a path at a hook', () => {
  const at = (hook: FilterChain['hook'], priority: number, of = path) =>
    pathAt({ name: 'base', hook, priority, policy: 'accept', rules: [] }, of);

  it('has no connection before the kernel finds it, and no outgoing interface', () => {
    expect([-201, -200, -199].map((priority) => at('prerouting', priority).isUntracked)).toEqual([
      true,
      undefined,
      undefined,
    ]);
    expect(at('prerouting', 0)).toMatchObject({ iif: 'cpn0', oif: null, toward: 'eth1', to: path.to });
    expect(at('prerouting', 0, { ...path, state: 'established' }).to).toBe('0.0.0.0/0');
  });

  it('has another source from masquerading on, and no incoming interface', () => {
    expect([99, 100, 101].map((priority) => at('postrouting', priority).from)).toEqual([
      path.from,
      '0.0.0.0/0',
      '0.0.0.0/0',
    ]);
    expect(at('postrouting', 0)).toMatchObject({ iif: null, oif: 'eth1' });
    expect([at('forward', 0), at('input', 0)]).toEqual([path, path]);
  });
});
