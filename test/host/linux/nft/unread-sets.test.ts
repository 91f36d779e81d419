import { describe, expect, test } from 'vitest';
import { describeUnread } from '../../../../src/core/forward/foreign/describe-drop.ts';
import { findForeignDrops } from '../../../../src/core/forward/foreign/foreign-drops.ts';
import { parseFilterTables } from '../../../../src/host/linux/nft/filter-tables.ts';
import { prefix } from '../../../core/samples.ts';

/** The table `ip t` with one chain at each hook that has these rules, and with sets that are listed without elements. */
function table(
  rules: readonly (readonly unknown[])[],
  policy: 'accept' | 'drop',
  flags: readonly string[] = [],
): string {
  const place = { family: 'ip', table: 't' };
  const chain = (hook: string) => [
    { chain: { ...place, name: hook, type: 'filter', hook, prio: 0, policy } },
    ...rules.map((expr) => ({ rule: { ...place, chain: hook, expr } })),
  ];
  return JSON.stringify({
    nftables: [
      { table: { family: 'ip', name: 't' } },
      { set: { ...place, name: 's', type: 'ipv4_addr', flags } },
      { map: { ...place, name: 'm', type: 'ipv4_addr', map: 'verdict' } },
      ...chain('forward'),
      ...chain('input'),
    ],
  });
}

const listed = (...elem: readonly unknown[]) =>
  JSON.stringify({ nftables: [{ set: { family: 'ip', table: 't', name: 's', ...(elem.length > 0 && { elem }) } }] });

const match = (left: object, right: unknown, op = '==') => ({ match: { op, left, right } });
const saddr = { payload: { protocol: 'ip', field: 'saddr' } };
const from = (op?: string) => match(saddr, '@s', op);
const dport = (protocol: string) => match({ payload: { protocol, field: 'dport' } }, '@s');
const [accept, drop] = [{ accept: null }, { drop: null }];

/** Whether packets are dropped when they are forwarded and when they come in, and for which of both a set counts. */
function judge(text: string, sets: readonly string[] = [], source = '10.77.0.0/24') {
  const forwarded = { iif: 'cpn0', oif: 'eth1', from: prefix(source), to: prefix('192.168.50.0/24'), state: 'new' };
  const came = { iif: 'eth0', oif: '', from: prefix('0.0.0.0/0'), to: prefix('203.0.113.5/32'), state: 'new', port: 1 };
  const { forward, inbound, unread } = findForeignDrops(parseFilterTables(text, sets), 'cpn0', {
    forward: [forwarded as never],
    inbound: [came as never],
  });
  return [forward.length > 0, inbound !== null, unread?.forward.length ?? 0, unread?.inbound.length ?? 0];
}

describe('a named set that is listed without its elements', () => {
  test('leaves it unknown whether packets are dropped, never certain', () => {
    expect(judge(table([[from(), accept]], 'drop'))).toEqual([false, false, 1, 1]);
    expect(judge(table([[from('!='), drop]], 'accept'))).toEqual([false, false, 1, 1]);
    expect(judge(table([[{ vmap: { key: saddr, data: '@m' } }]], 'drop'))).toEqual([false, false, 1, 1]);
    expect(judge(table([[from(), { jump: { target: 'gone' } }]], 'drop'))).toEqual([false, false, 1, 1]);
    expect(judge(table([[from(), drop]], 'accept', ['interval']))).toEqual([false, false, 1, 1]);
  });

  test('does not count where its rule has no effect on the packets', () => {
    expect(judge(table([[from(), drop]], 'accept'))).toEqual([false, false, 0, 0]);
    expect(judge(table([[from(), drop]], 'accept'), [], '10.77.0.5/32')).toEqual([false, false, 1, 0]);
    expect(judge(table([[accept], [from(), accept]], 'drop'))).toEqual([false, false, 0, 0]);
    expect(judge(table([[dport('tcp'), accept]], 'drop'))).toEqual([false, true, 1, 0]);
    const ipv6 = match({ payload: { protocol: 'ip6', field: 'saddr' } }, '@s');
    expect(judge(table([[ipv6, accept]], 'drop'))).toEqual([true, true, 0, 0]);
  });

  test('counts as what it has once it is read, even nothing', () => {
    const text = table([[from(), accept]], 'drop', ['interval']);
    expect(judge(text, [listed()])).toEqual([true, true, 0, 0]);
    expect(judge(text, [listed({ prefix: { addr: '10.0.0.0', len: 8 } })])).toEqual([false, false, 0, 0]);
    expect(judge(text, [listed('172.16.0.1')])).toEqual([true, false, 0, 0]);
  });

  test('is named with the command that shows it, fit for a terminal', () => {
    const set = { kind: 'set', family: 'ip', table: 't', name: '\u{1b}[31m' } as const;
    expect(describeUnread([])).toBeNull();
    expect(describeUnread([set, set])).toEqual({
      found:
        'whether rules with the nft set ip t \u{fffd}[31m and 1 more drop packets is unknown: it is too large to read here',
      remedy: 'see whether it has their addresses: nft list set ip t \u{fffd}[31m',
    });
  });
});
