import { describe, expect, it } from 'vitest';
import type {
  FilterChain,
  FilterRule,
  FilterTable,
  NamedSet,
  RuleCondition,
  RuleVerdict,
} from '../../../../src/core/forward/foreign/chain.ts';
import { describeDrop } from '../../../../src/core/forward/foreign/describe-drop.ts';
import { findForwardDrops } from '../../../../src/core/forward/foreign/find-drops.ts';
import { findInboundDrop } from '../../../../src/core/forward/foreign/find-inbound-drop.ts';
import { findForeignDrops } from '../../../../src/core/forward/foreign/foreign-drops.ts';
import type { InboundPath } from '../../../../src/core/forward/foreign/inbound-path.ts';
import { type ForwardPath, forwardPaths } from '../../../../src/core/forward/foreign/path.ts';
import { rangeOf } from '../../../../src/core/net/cidr.ts';
import { network, options, peer, prefix, underlay } from '../../samples.ts';

const cidr = prefix('10.77.0.0/24');
const [lan, annex] = [prefix('192.168.50.0/24'), prefix('192.168.60.0/24')];
const out = (to = lan, oif = 'eth1'): ForwardPath => ({ iif: 'cpn0', oif, from: cidr, to, state: 'new' });
const back = (from = lan, iif = 'eth1'): ForwardPath => ({ iif, oif: 'cpn0', from, to: cidr, state: 'established' });
const between: ForwardPath = { iif: 'cpn0', oif: 'cpn0', from: cidr, to: cidr, state: 'new' };
const inbound: InboundPath = {
  ...{ iif: 'eth0', oif: '', from: prefix('0.0.0.0/0'), to: prefix('203.0.113.22/32'), state: 'new', port: 51820 },
};
const set: NamedSet = { kind: 'set', family: 'ip', table: 'filter', name: 'geo' };
const unread: RuleCondition = { on: 'unread', set, end: null };
const does = (verdict: 'accept' | 'drop' | 'return'): RuleVerdict => ({ does: verdict });
const jump = (chain: string): RuleVerdict => ({ does: 'jump', chain });
const rule = (verdict: RuleVerdict, ...conditions: RuleCondition[]): FilterRule => ({ conditions, verdict });
const chain = (name: string, changes: Partial<FilterChain> = {}): FilterChain => ({
  ...{ name, hook: null, priority: 0, policy: 'accept', rules: [], ...changes },
});
const table = (chains: readonly FilterChain[], changes: Partial<FilterTable> = {}): FilterTable => ({
  ...{ family: 'ip', name: 'filter', chains: new Map(chains.map((each) => [each.name, each])), ...changes },
});
const forward = (changes: Partial<FilterChain>) => chain('FORWARD', { hook: 'forward', ...changes });
const input = (changes: Partial<FilterChain>) => chain('INPUT', { hook: 'input', ...changes });
const droppedIn = (tables: readonly FilterTable[], paths: readonly ForwardPath[] = [out()]) =>
  findForwardDrops(tables, 'cpn0', paths);

describe('drops of forwarded packets', () => {
  it('are found in all tables but our own, which are of the family inet', () => {
    const closed = [forward({ policy: 'drop' })];
    expect(droppedIn([table(closed, { family: 'inet', name: 'cpn_cpn1' })])).toEqual([]);
    const foreign = [
      table(closed, { family: 'inet', name: 'fw' }),
      table(closed, { name: 'cpn_cpn1' }),
      table(closed, { family: 'inet', name: 'xcpn_' }),
    ];
    expect(droppedIn(foreign).map(({ table: name }) => name)).toEqual(['fw', 'cpn_cpn1', 'xcpn_']);
  });

  it('are certain if only a rule that drops depends on an unread set, and not if one that accepts does', () => {
    const asked: NamedSet[] = [];
    const find = (verdict: 'accept' | 'drop') =>
      findForwardDrops(
        [table([forward({ policy: 'drop', rules: [rule(does(verdict), unread)] })])],
        'cpn0',
        [out()],
        (each) => asked.push(each),
      );
    expect(find('drop')).toMatchObject([{ reason: 'policy drop of chain FORWARD' }]);
    expect(find('accept')).toEqual([]);
    expect(asked).toEqual([set, set]);
  });

  it('are none where a rule about the tunnel leads some packets to another chain', () => {
    const about: RuleCondition = { on: 'iif', not: false, names: ['cpn0'] };
    const others: RuleCondition = { on: 'iif', not: false, names: ['cpn*'] };
    const leading = (condition: RuleCondition) =>
      droppedIn([
        table([
          forward({ policy: 'drop', rules: [rule(jump('mine'), condition, { on: 'unknown' })] }),
          chain('mine', { rules: [rule(does('accept'))] }),
        ]),
      ]);
    expect(leading(about)).toEqual([]);
    expect(leading(others)).toHaveLength(1);
  });

  it('of single addresses of a bridge are listed together for all paths', () => {
    const bridges = [prefix('172.18.0.0/24'), prefix('172.19.0.0/24')];
    const closing = (text: string) =>
      rule(
        does('drop'),
        { on: 'iif', not: true, names: ['docker0'] },
        { on: 'to', not: false, ranges: [rangeOf(prefix(text))] },
      );
    const rules = ['172.18.0.2/32', '172.18.0.3/32', '172.19.0.2/32'].map(closing);
    const paths = bridges.map((to) => out(to, 'docker0'));
    const [drop, ...more] = droppedIn([table([forward({ rules })])], paths);
    expect(more).toEqual([]);
    expect(drop?.paths).toEqual(paths);
    expect(drop?.some).toEqual(
      ['172.18.0.2/32', '172.18.0.3/32', '172.19.0.2/32'].map((text) => rangeOf(prefix(text))),
    );
    expect(drop && describeDrop(drop)).toContain(
      'to some of 172.18.0.0/24, 172.19.0.0/24 (172.18.0.2, 172.18.0.3, 172.19.0.2)',
    );
    const twice = droppedIn([table([forward({ rules })])], [...paths, ...paths]);
    expect(twice.map(describeDrop)).toEqual(drop && [describeDrop(drop)]);
  });

  it('let published ports pass in chains of Docker, and not in the one of an operator', () => {
    const letsPublished = (name: string) =>
      droppedIn([
        table([
          forward({ rules: [rule(jump(name))] }),
          chain('DOCKER-USER'),
          chain(name, { rules: [rule(does('drop'))] }),
        ]),
      ]).map((drop) => drop.letsPublished ?? false);
    expect(letsPublished('DOCKER')).toEqual([true]);
    expect(letsPublished('DOCKER-FORWARD')).toEqual([true]);
    expect(letsPublished('DOCKER-USER')).toEqual([false]);
    expect(letsPublished('DOCKERS')).toEqual([false]);
  });

  it('have a remedy with a command for each path', () => {
    const [drop] = droppedIn([table([forward({ policy: 'drop' })], { name: 'mangle' })], [out(), back(), out(annex)]);
    expect(drop?.remedy).toBe(
      '"iptables -t mangle -I FORWARD -i cpn0 -o eth1 -d 192.168.50.0/24 -j ACCEPT' +
        ' && iptables -t mangle -I FORWARD -i eth1 -o cpn0 -d 10.77.0.0/24 -j ACCEPT' +
        ' && iptables -t mangle -I FORWARD -i cpn0 -o eth1 -d 192.168.60.0/24 -j ACCEPT" lets them through',
    );
  });

  it.each<[paths: readonly ForwardPath[], text: string]>([
    [[out()], 'to 192.168.50.0/24'],
    [[back()], 'back from 192.168.50.0/24'],
    [[out(), back()], 'to and from 192.168.50.0/24'],
    [[out(), out(lan, 'eth2'), back()], 'to and from 192.168.50.0/24'],
    [[out(), back(annex)], 'to 192.168.50.0/24 and back from 192.168.60.0/24'],
    [[between], 'from one peer to another'],
    [[out(), back(), between], 'to 192.168.50.0/24 and back from 192.168.50.0/24 and from one peer to another'],
  ])('are described by their paths', (paths, text) => {
    const [drop] = droppedIn([table([forward({ policy: 'drop' })])], paths);
    expect(drop && describeDrop(drop)).toMatch(new RegExp(`^packets ${text} do not get through`));
  });
});

describe('a drop of incoming packets', () => {
  const find = (...rules: FilterRule[]) =>
    findInboundDrop(
      [table([input({ policy: 'drop', rules }), chain('mine', { rules: [rule(does('accept'))] })])],
      [inbound],
    );

  it('is described by the last rule that certainly drops', () => {
    const first = chain('first', { rules: [rule(does('drop'), unread)] });
    const rules = [rule(jump('first')), rule({ does: 'reject' })];
    const found = findInboundDrop([table([input({ rules }), first])], [inbound]);
    expect(found).toMatchObject({ reason: 'chain INPUT', rejects: true });
  });

  it('is none if a rule by connection state leads to another chain, and one if it accepts known connections', () => {
    expect(find(rule(jump('mine'), { on: 'some state' }))).toBeNull();
    expect(find(rule(does('accept'), { on: 'some state' }))).toMatchObject({ reason: 'policy drop of chain INPUT' });
  });
});

it('sets that only incoming packets depend on are reported as unread', () => {
  const tables = [table([input({ policy: 'drop', rules: [rule(does('accept'), unread)] })])];
  expect(findForeignDrops(tables, 'cpn0', { forward: [out()], inbound: [inbound] })).toEqual({
    forward: [],
    inbound: null,
    unread: { forward: [], inbound: [set] },
  });
});

describe('the paths that a connector forwards', () => {
  const connector = peer(1, { type: 'connector' });
  const host = { ...underlay, connected: ['eth1', 'eth2'].map((link) => ({ prefix: lan, link })) };
  const pathsOf = (others: readonly ReturnType<typeof peer>[], self = connector, on = host) =>
    forwardPaths({ link: 'cpn0', map: network([self, ...others]), self, underlay: on, options });

  it('lead to each interface of a route, and to an unknown one without any', () => {
    const paths = pathsOf([]);
    expect(paths).toEqual([out(lan, 'eth1'), back(lan, 'eth1'), out(lan, 'eth2'), back(lan, 'eth2')]);
    const [first] = pathsOf([], connector, { ...host, connected: [], uplinks: [] });
    expect(first).toEqual({ ...out(), oif: null });
  });

  it('lead from peer to peer if two without endpoint meet here', () => {
    const relays = (...of: Parameters<typeof pathsOf>) => pathsOf(...of).filter(({ from, to }) => from === to).length;
    expect(relays([peer(3), peer(4)])).toBe(2);
    expect(relays([peer(3)])).toBe(0);
    expect(relays([peer(3), peer(4)], { ...connector, withdrawn: [cidr] })).toBe(2);
  });
});

it('a rule for all addresses but some closes no single address', () => {
  const rules = [
    rule(
      does('drop'),
      { on: 'iif', not: true, names: ['docker0'] },
      { on: 'to', not: true, ranges: [rangeOf(prefix('172.18.0.2/32'))] },
    ),
  ];
  expect(droppedIn([table([forward({ rules })])], [out(prefix('172.18.0.0/24'), 'docker0')])).toEqual([]);
});
