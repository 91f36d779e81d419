import { describe, expect, test } from 'vitest';
import type { AccessRule } from '../../../../src/contract/rules.ts';
import { compareAccess } from '../../../../src/control-plane/domain/rules/compare.ts';
import { runTests } from '../../../../src/control-plane/domain/rules/decide.ts';
import { checkElements } from '../../../../src/control-plane/domain/rules/elements.ts';
import { listEndpoints, type RuledNetwork } from '../../../../src/control-plane/domain/rules/endpoints.ts';
import { listEnforcement } from '../../../../src/control-plane/domain/rules/enforcement.ts';
import { listReachable, listRefused } from '../../../../src/control-plane/domain/rules/reach.ts';
import type { RuleSet } from '../../../../src/control-plane/domain/rules/rule-set.ts';
import { InvalidRequest } from '../../../../src/control-plane/errors.ts';
import { type Prefix, parsePrefix } from '../../../../src/core/net/cidr.ts';
import { parseMapSelector } from '../../../../src/core/rules/map-selector.ts';
import { makePeer } from './generated.ts';

const prefixes = (...texts: string[]): Prefix[] => texts.map((text) => parsePrefix(text));
const rule = (fields: Partial<AccessRule> = {}): AccessRule => ({
  ...{ name: 'web', from: ['any'], to: ['any'], protocol: 'any', ports: [], ...fields },
});
const closed = (...rules: AccessRule[]): RuleSet => ({ mode: 'closed', rules, tests: [], require_enforcement: false });
const open: RuleSet = { ...closed(), mode: 'open' };
const networkOf = (count: number, fields: (id: number) => object = () => ({})): RuledNetwork => ({
  routes: [],
  peers: Array.from({ length: count }, (_, index) => makePeer(index + 1, fields(index + 1))),
});
const all = { from: 'any', to: 'any', protocol: 'any', ports: [] };

describe('the ends of connections', () => {
  test('are peers, routes, and named parts of routes, but for a prefix that its parts fill', () => {
    const network = { routes: prefixes('10.1.0.0/24', '10.2.0.0/30'), peers: [makePeer(1)] };
    const named = ['cidr:10.1.0.0/25', 'cidr:10.1.0.128/25', 'cidr:10.2.0.0/31', 'cidr:10.9.0.0/24', 'tag:x', 'any'];
    const ends = listEndpoints(network, named.map(parseMapSelector)).map(({ selector }) => selector);
    expect(ends).toEqual(['peer:host-1', ...named.slice(0, 2), 'route:10.2.0.0/30', 'cidr:10.2.0.0/31']);
  });
});

describe('a comparison', () => {
  test('of a network that closes is one entry, also with 10,000 peers', () => {
    const changes = compareAccess(networkOf(10_000), open, closed());
    expect(changes).toEqual({ gained: [], lost: [all], gainedCount: 0, lostCount: 1, complete: true });
    expect(compareAccess(networkOf(10_000), closed(rule()), open)).toMatchObject({ gainedCount: 0, lostCount: 0 });
  });

  test('has an end that changes the same for all others once, whichever side it is on', () => {
    const change = (from: string, to: string) => ({ ...all, from, to, protocol: 'tcp' });
    const [to, from] = [rule({ to: ['peer:2'], protocol: 'tcp' }), rule({ from: ['peer:2'], protocol: 'tcp' })];
    const gainedBy = (next: AccessRule) => compareAccess(networkOf(100), closed(), closed(next)).gained;
    expect(gainedBy(to)).toEqual([change('any', 'peer:host-2')]);
    expect(gainedBy(from)).toEqual([change('peer:host-2', 'any')]);
  });

  test('lists 1,000 entries, and counts all of them', () => {
    const network = networkOf(10_000, (id) => ({ tags: [id % 2 === 0 ? 'even' : 'odd'] }));
    const next = closed(rule({ from: ['tag:even'], to: ['tag:odd'], protocol: 'udp', ports: ['53'] }));
    const changes = compareAccess(network, closed(), next);
    expect([changes.gained.length, changes.gainedCount, changes.lostCount]).toEqual([1000, 25_000_000, 0]);
    expect(changes.gained[0]).toEqual({ from: 'peer:host-2', to: 'peer:host-1', protocol: 'udp', ports: ['53'] });
  });

  test('has the ports that remain, and no entry for a rule with another name alone', () => {
    const tcp = (name: string, ports: string[]) => rule({ name, protocol: 'tcp', ports });
    const changed = (before: AccessRule, after: AccessRule) =>
      compareAccess(networkOf(3), closed(before), closed(after));
    const changes = changed(tcp('a', ['20-30', '443']), tcp('b', ['25-26', '400-500']));
    expect(changes.gained).toEqual([{ ...all, protocol: 'tcp', ports: ['400-442', '444-500'] }]);
    expect(changes.lost).toEqual([{ ...all, protocol: 'tcp', ports: ['20-24', '27-30'] }]);
    expect(changed(tcp('a', ['22']), tcp('b', ['22']))).toMatchObject({ gainedCount: 0, lostCount: 0 });
    expect(changed(rule(), rule({ protocol: 'icmp' })).lost).toEqual([
      { ...all, protocol: 'tcp' },
      { ...all, protocol: 'udp' },
      { ...all, protocol: 'other' },
    ]);
  });
});

describe('the elements of a host', () => {
  const tagged = networkOf(300, (id) => ({ tags: id === 1 ? ['one'] : ['other'] })).peers;
  const refusal = (rules: AccessRule[], peers = tagged) => {
    try {
      checkElements(rules, peers);
      return null;
    } catch (error) {
      return error instanceof InvalidRequest ? error.fields : error;
    }
  };
  const ports = (count: number) => Array.from({ length: count }, (_, index) => `${index * 2 + 1}`);

  test('are senders times ports, for each of its destinations, and the other way', () => {
    const toward = rule({ from: ['tag:other'], to: ['tag:one'], protocol: 'tcp', ports: ports(64) });
    const four = Array.from({ length: 4 }, (_, index) => ({ ...toward, name: `rule ${index}` }));
    expect(refusal(four.slice(0, 3))).toBeNull();
    expect(refusal(four)).toEqual({
      'rules.3': [expect.stringMatching(/^"rule 3" brings host-1 to 76544 elements; /)],
    });
    const away = { ...toward, from: toward.to, to: toward.from };
    expect(refusal([...four.slice(0, 3), away])).toHaveProperty(['rules.3']);
    // For each of the others, the one peer is one sender.
    expect(refusal(Array.from({ length: 900 }, () => rule({ from: ['tag:one'], to: ['peer:2'] })))).toBeNull();
  });

  test('of a connector are also those of the routes that it serves', () => {
    const box = makePeer(7, { isConnector: true, served: prefixes('10.1.0.0/24') });
    const parts = Array.from({ length: 256 }, (_, index) => `cidr:10.1.0.${index}/32`);
    const wide = rule({ from: parts, to: ['cidr:10.1.0.0/24', 'cidr:10.1.0.0/25'], protocol: 'udp', ports: ports(64) });
    expect(refusal([wide], [box])).toBeNull();
    expect(refusal([wide, rule()], [box])).toHaveProperty(['rules.1']);
    expect(refusal([wide], [makePeer(7)])).toBeNull();
  });

  test('of a rule from all to all are one in each direction', () => {
    const many = Array.from({ length: 1000 }, () => rule({ protocol: 'tcp', ports: ports(32) }));
    expect(refusal(many)).toBeNull();
    expect(refusal([...many, ...many.slice(0, 25)])).toHaveProperty(['rules.1024']);
  });
});

describe('what enforces the rules', () => {
  const enforcers = (...peers: Parameters<typeof listEnforcement>[0]) => listEnforcement(peers).map(({ by }) => by);
  const phone = makePeer(3, { enforcesRules: false, profile: [] });
  test('is the destination; for a phone a connector, if each of them does', () => {
    const [box, old] = [makePeer(1, { isConnector: true }), makePeer(2, { isConnector: true, enforcesRules: false })];
    expect(enforcers(box, phone, makePeer(4, { enforcesRules: false }))).toEqual([
      'destination',
      'connector',
      'nothing',
    ]);
    expect(enforcers(box, old, phone)).toEqual(['destination', 'nothing', 'nothing']);
    expect(enforcers(phone)).toEqual(['nothing']);
  });
});

describe('connections that cannot keep their source', () => {
  const [route] = prefixes('10.1.0.0/24');
  const relayed = { hasEndpoint: false };
  const refused = (...peers: RuledNetwork['peers'][number][]) =>
    listRefused({ routes: route ? [route] : [], peers }, closed(rule()), 100)
      .map(({ from, to }) => `${from} ${to}`)
      .toSorted();

  test('are those from a route to a host that does not take them', () => {
    expect(refused(makePeer(1), makePeer(2, { enforcesRules: false }), makePeer(3, { followsRelay: false }))).toEqual([
      'route:10.1.0.0/24 peer:host-2',
      'route:10.1.0.0/24 peer:host-3',
    ]);
    const phone = { enforcesRules: false, followsRelay: false };
    expect(refused(makePeer(1, { ...phone, profile: prefixes('10.1.0.0/16') }))).toEqual([]);
    expect(refused(makePeer(1, { ...phone, profile: [] }))).toEqual(['route:10.1.0.0/24 peer:host-1']);
  });

  test('are those that are relayed to a host that uses another relay', () => {
    const old = makePeer(1, { ...relayed, followsRelay: false });
    const fromPeers = (...peers: Parameters<typeof refused>) =>
      refused(...peers).filter((pair) => pair.startsWith('peer'));
    expect(fromPeers(old, makePeer(2, relayed))).toEqual(['peer:host-2 peer:host-1']);
    expect(fromPeers(old, makePeer(2))).toEqual([]);
    expect(fromPeers({ ...old, hasEndpoint: true }, makePeer(2, relayed))).toEqual([]);
    expect(fromPeers({ ...old, hasEndpoint: true }, makePeer(2, { ...relayed, profile: [] }))).toEqual([
      'peer:host-2 peer:host-1',
    ]);
  });

  test('are none in an open network, and as many as there is room for', () => {
    const peers = Array.from({ length: 50 }, (_, index) => makePeer(index + 1, { ...relayed, followsRelay: false }));
    const network = { routes: [], peers };
    expect(listRefused(network, { ...closed(rule()), mode: 'open' }, 100)).toEqual([]);
    expect(listRefused(network, closed(rule()), 100)).toHaveLength(100);
  });
});

describe('tests of rules', () => {
  const run = (set: RuleSet, test: object) => {
    const shown = { from: 'any', to: 'any', protocol: 'tcp', expect: 'allow', ...test } as RuleSet['tests'][number];
    return runTests(networkOf(3), { ...set, tests: [shown] }, [shown])[0];
  };

  test('decide as in a closed network, also in an open one', () => {
    expect(run({ ...closed(), mode: 'open' }, { expect: 'deny' })).toMatchObject({
      passed: true,
      why: 'no rule allows it',
    });
  });

  test('without a port are about all ports', () => {
    const set = closed(rule({ protocol: 'tcp', ports: ['1-100', '101-65535'] }));
    expect(run(set, {})).toMatchObject({ passed: true });
    const less = closed(rule({ protocol: 'tcp', ports: ['1-100', '102-65535'] }));
    for (const expected of ['allow', 'deny'])
      expect(run(less, { expect: expected })).toMatchObject({
        ...{
          passed: false,
          why: 'peer:host-1 to peer:host-2: the rules allow ports 1-100, 102-65535 alone (first: rule "web")',
        },
      });
  });

  test('of selectors that name no pair pass', () => {
    expect(run(closed(), { from: 'peer:1', to: 'peer:1' })).toMatchObject({
      ...{ passed: true, why: 'the selectors name no pair' },
    });
  });
});

test('rules that tell thousands of peers apart are compared as far as that takes no long time', () => {
  const network = networkOf(2000);
  const near = (id: number, step: number) =>
    Array.from({ length: 64 }, (_, index) => `peer:${((id + index * step) % 2000) + 1}`);
  const many = closed(
    ...Array.from({ length: 200 }, (_, id) =>
      rule({ from: near(id * 7, 3), to: near(id * 13, 11), protocol: 'tcp', ports: [`${id + 1}`] }),
    ),
  );
  expect(compareAccess(network, closed(), many)).toMatchObject({ complete: false, lost: [], lostCount: 0 });
  expect(compareAccess(network, closed(...many.rules.slice(1)), many)).toMatchObject({ complete: true });
  expect(listReachable(network, many, { protocol: 'tcp', port: 9999 }, null)).toEqual({ pairs: [], complete: false });
  expect(listReachable(network, many, { protocol: 'tcp', port: 9999 }, 'peer:5')).toEqual({
    pairs: [],
    complete: true,
  });
});

test('who reaches what is cut at 10,000 pairs', () => {
  const { pairs, complete } = listReachable(networkOf(1000), open, null, null);
  expect([pairs.length, complete]).toEqual([10_000, false]);
});
