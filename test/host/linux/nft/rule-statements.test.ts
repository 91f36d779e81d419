import { describe, expect, test } from 'vitest';
import { readRuleStatements } from '../../../../src/host/linux/nft/rule-statements.ts';

const none = () => null;
const read = (...statements: object[]) => readRuleStatements(statements, none);
const drop = { drop: null };
const conditionsOf = (statement: object) => read(statement, drop).map(({ conditions }) => conditions);
const match = (left: object, right: unknown, op = '==') => ({ match: { op, left, right } });
const meta = (key: string) => ({ meta: { key } });
const payload = (protocol: string, field: string) => ({ payload: { protocol, field } });
const unknown = { on: 'unknown' };

describe('the verdict of a rule of nft', () => {
  test.each([
    [{ accept: null }, { does: 'accept' }],
    [{ drop: null }, { does: 'drop' }],
    [{ reject: { type: 'icmp' } }, { does: 'reject' }],
    [{ return: null }, { does: 'return' }],
    [{ queue: { num: 0 } }, { does: 'unknown' }],
    [{ continue: null }, { does: 'none' }],
    [{ jump: { target: 'a' } }, { does: 'jump', chain: 'a' }],
    [{ goto: { target: 'a' } }, { does: 'goto', chain: 'a' }],
    [{ xt: { type: 'target', name: 'REJECT' } }, { does: 'reject' }],
    [{ xt: { type: 'target', name: 'NFQUEUE' } }, { does: 'unknown' }],
  ])('%j', (statement, verdict) => {
    expect(read(statement)).toEqual([{ conditions: [], verdict }]);
  });

  test('is none of a target of iptables that goes on with the next rule', () => {
    const targets = 'LOG NFLOG TRACE MARK CONNMARK TCPMSS CLASSIFY DSCP TOS TTL SET AUDIT CHECKSUM SECMARK';
    for (const name of `${targets} CONNSECMARK LED RATEEST TEE`.split(' '))
      expect([name, read({ xt: { type: 'target', name } })]).toEqual([name, []]);
  });
});

describe('the effect of a rule of nft', () => {
  const tcp = match(meta('l4proto'), 'tcp');
  const none = { does: 'none' };
  test.each([
    ['untracks', { notrack: null }],
    ['untracks', { xt: { type: 'target', name: 'CT' } }],
    ['untracks', { xt: { type: 'target', name: 'NOTRACK' } }],
    ['offloads', { flow: { op: 'add', flowtable: '@f' } }],
  ])('%s: %j', (effect, statement) => {
    const conditions = [{ on: 'protocol', not: false, names: ['tcp'] }];
    expect(read(tcp, statement)).toEqual([{ conditions, verdict: none, effect }]);
    expect(read(tcp, statement, drop).map(({ verdict }) => verdict.does)).toEqual(['none', 'drop']);
  });
});

describe('a statement of nft', () => {
  test.each(['counter', 'log', 'mangle', 'last', 'comment', 'ct helper', 'ct timeout'])(
    '%s holds for every packet',
    (name) => {
      expect(conditionsOf({ [name]: {} })).toEqual([[]]);
    },
  );

  test.each(['limit', 'quota', 'ct count', 'socket', 'fib'])('%s may hold or not', (name) => {
    expect(conditionsOf({ [name]: {} })).toEqual([[unknown]]);
  });

  test.each([
    ['udp', { on: 'protocol', not: false, names: ['udp'] }],
    ['tcp', { on: 'protocol', not: false, names: ['tcp'] }],
    ['udplite', { on: 'protocol', not: false, names: ['udplite'] }],
    ['sctp', { on: 'protocol', not: false, names: ['sctp'] }],
    ['dccp', { on: 'protocol', not: false, names: ['dccp'] }],
  ])('on a port of %s is on that protocol', (protocol, condition) => {
    const port = { on: 'port', not: false, ranges: [{ first: 53, last: 53 }] };
    expect(conditionsOf(match(payload(protocol, 'dport'), 53))).toEqual([[condition, port]]);
    expect(conditionsOf(match(payload(protocol, 'sport'), 53))).toEqual([[condition, unknown]]);
  });

  test.each([
    [payload('icmp', 'type'), 'echo-request', [{ on: 'protocol', not: false, names: ['icmp'] }, unknown]],
    [payload('th', 'dport'), 53, [{ on: 'port', not: false, ranges: [{ first: 53, last: 53 }] }]],
    [payload('ip6', 'saddr'), 'fd00::1', [{ on: 'nothing' }]],
    [payload('icmpv6', 'type'), 1, [{ on: 'nothing' }]],
    [payload('ip', 'ttl'), 1, [unknown]],
    [payload('ip', 'protocol'), 'udp', [{ on: 'protocol', not: false, names: ['udp'] }]],
    [meta('l4proto'), 1, [{ on: 'protocol', not: false, names: ['icmp'] }]],
    [meta('l4proto'), 6, [{ on: 'protocol', not: false, names: ['tcp'] }]],
    [meta('l4proto'), 17, [{ on: 'protocol', not: false, names: ['udp'] }]],
    [meta('l4proto'), 58, [{ on: 'protocol', not: false, names: ['ipv6-icmp'] }]],
    [meta('l4proto'), 99, [unknown]],
    [meta('iif'), 'eth0', [{ on: 'iif', not: false, names: ['eth0'] }]],
    [meta('iifname'), 'eth0', [{ on: 'iif', not: false, names: ['eth0'] }]],
    [meta('oif'), 'eth0', [{ on: 'oif', not: false, names: ['eth0'] }]],
    [meta('oifname'), 'eth0', [{ on: 'oif', not: false, names: ['eth0'] }]],
    [meta('mark'), 7, [unknown]],
    [meta('nfproto'), 'ipv4', []],
    [meta('nfproto'), 'ipv6', [{ on: 'nothing' }]],
    [meta('protocol'), 'ip', []],
    [meta('protocol'), 'ip6', [{ on: 'nothing' }]],
    [{ ct: { key: 'status' } }, 'dnat', [{ on: 'redirected', not: false }]],
    [{ ct: { key: 'status' } }, 'snat', [unknown]],
    [{ ct: { key: 'mark' } }, 1, [unknown]],
  ] as const)('on %j is %j', (left, right, conditions) => {
    expect(conditionsOf(match(left, right))).toEqual([conditions]);
  });

  test.each([
    ['nfproto', 'ipv4', [{ on: 'nothing' }]],
    ['nfproto', 'ipv6', []],
    ['protocol', 'ip', [{ on: 'nothing' }]],
    ['protocol', 'ip6', []],
  ])('on another %s than %s', (key, family, conditions) => {
    expect(conditionsOf(match(meta(key), family, '!='))).toEqual([conditions]);
  });

  test('on a comparison other than equal is unknown', () => {
    for (const op of ['<', '>', '<=', '>='])
      expect(conditionsOf(match(meta('iifname'), 'eth0', op))).toEqual([[unknown]]);
  });

  test('on several fields together is one alternative for each value, and unknown where it is inverted', () => {
    const both = { concat: [meta('iifname'), payload('udp', 'dport')] };
    const values = { set: [{ concat: ['eth0', 53] }, { concat: ['eth1', 54] }] };
    const alternative = (name: string, port: number) => [
      { on: 'iif', not: false, names: [name] },
      { on: 'protocol', not: false, names: ['udp'] },
      { on: 'port', not: false, ranges: [{ first: port, last: port }] },
    ];
    expect(conditionsOf(match(both, values))).toEqual([alternative('eth0', 53), alternative('eth1', 54)]);
    expect(conditionsOf(match(both, values, '!='))).toEqual([[unknown]]);
  });

  test('on a set that is not listed is of that set, of one end only where its elements are single and not inverted', () => {
    const set = { kind: 'set', family: 'ip', table: 't', name: 's' } as const;
    const endOf = (hasRanges: boolean, op: string, field = 'saddr') =>
      readRuleStatements([match(payload('ip', field), '@s', op), drop], () => ({ set, hasRanges }))[0]?.conditions;
    expect(endOf(false, '==')).toEqual([{ on: 'unread', set, end: 'from' }]);
    expect(endOf(false, '==', 'daddr')).toEqual([{ on: 'unread', set, end: 'to' }]);
    expect(endOf(true, '==')).toEqual([{ on: 'unread', set, end: null }]);
    expect(endOf(false, '!=')).toEqual([{ on: 'unread', set, end: null }]);
  });
});
