import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Flow, Rule, Selector } from '../../../src/core/map/access-rules.ts';
import { type Decision, evaluate } from '../../../src/core/rules/evaluate.ts';
import { address, network, peer, prefix } from '../samples.ts';
import { closedNetworks, flowsOf } from './generated-rules.ts';

const lan = prefix('192.168.50.0/24');
const peers = [
  peer(1, { type: 'connector', enforcesRules: true }),
  peer(2, { tags: ['ops'], enforcesRules: true }),
  peer(3, { name: 'phone' }),
];
const map = network(peers, { routes: [lan] });

const anything: Selector[] = [{ kind: 'any' }];
const rule = (changes: Partial<Rule>): Rule => ({
  ...{ name: 'r', from: anything, to: anything, protocol: 'any', ports: [] },
  ...changes,
});
const closedBy = (rules: readonly Rule[], requiresEnforcement = false) => ({
  ...map,
  rules: { rules, requiresEnforcement },
});
const flow = (from: string, to: string, changes: Partial<Flow> = {}): Flow => ({
  ...{ from: address(from), to: address(to), protocol: 'tcp', port: 22 },
  ...changes,
});
const by = (decision: Decision) => (decision.by === 'rule' ? decision.rule.name : decision.by);

describe('a connection', () => {
  it('is allowed in an open network', () => {
    expect(evaluate(map, flow('10.77.0.3', '10.77.0.2'))).toEqual({ allowed: true, by: 'open' });
  });

  it('is denied in a closed network without a rule', () => {
    expect(evaluate(closedBy([]), flow('10.77.0.3', '10.77.0.2'))).toEqual({ allowed: false, by: 'closed' });
  });

  it.each<[string, Selector, string, boolean]>([
    ['any', { kind: 'any' }, '10.77.0.2', true],
    ['a peer by its id', { kind: 'peer', id: 2 }, '10.77.0.2', true],
    ['another peer', { kind: 'peer', id: 3 }, '10.77.0.2', false],
    ['an id of another form', { kind: 'peer', id: '2' }, '10.77.0.2', true],
    ['a tag', { kind: 'tag', tag: 'ops' }, '10.77.0.2', true],
    ['a tag that the peer lacks', { kind: 'tag', tag: 'web' }, '10.77.0.2', false],
    ['a route', { kind: 'route', prefix: lan }, '192.168.50.7', true],
    ['a route with a peer, never', { kind: 'route', prefix: prefix('0.0.0.0/0') }, '10.77.0.2', false],
    ['a part of a route', { kind: 'cidr', prefix: prefix('192.168.50.0/28') }, '192.168.50.7', true],
    ['another part of a route', { kind: 'cidr', prefix: prefix('192.168.50.0/28') }, '192.168.50.17', false],
    ['a removed peer, never', { kind: 'gone', name: 'peer-2' }, '10.77.0.2', false],
  ])('is selected as a destination and as a sender by %s: %s', (_, selector, at, selected) => {
    expect(evaluate(closedBy([rule({ to: [selector] })]), flow('10.77.0.3', at)).allowed).toBe(selected);
    expect(evaluate(closedBy([rule({ from: [selector] })]), flow(at, '10.77.0.3')).allowed).toBe(selected);
  });

  it.each<[string, Partial<Rule>, Partial<Flow>, boolean]>([
    ['its protocol', { protocol: 'tcp' }, {}, true],
    ['another protocol', { protocol: 'udp' }, {}, false],
    ['its port', { protocol: 'tcp', ports: [{ first: 22, last: 22 }] }, {}, true],
    ['the end of a range', { protocol: 'tcp', ports: [{ first: 20, last: 22 }] }, {}, true],
    ['the range after it', { protocol: 'tcp', ports: [{ first: 23, last: 25 }] }, {}, false],
    ['every protocol, of another one', {}, { protocol: 'other', port: null }, true],
    ['tcp, of another one', { protocol: 'tcp' }, { protocol: 'other', port: null }, false],
    ['icmp', { protocol: 'icmp' }, { protocol: 'icmp', port: null }, true],
  ])('is allowed by a rule for %s', (_, changes, of, allowed) => {
    expect(evaluate(closedBy([rule(changes)]), flow('10.77.0.3', '10.77.0.2', of)).allowed).toBe(allowed);
  });

  it('is allowed whatever the order of the rules', () => {
    const cases = closedNetworks.chain((map) => flowsOf(map).map((each) => [map, each] as const));
    let allowed = 0;
    fc.assert(
      fc.property(cases, ([map, each]) => {
        const reversed = { ...map, rules: { ...map.rules, rules: map.rules.rules.toReversed() } };
        const isAllowed = evaluate(map, each).allowed;
        if (isAllowed) allowed += 1;
        return evaluate(reversed, each).allowed === isAllowed;
      }),
      { numRuns: 500 },
    );
    expect(allowed).toBeGreaterThan(20);
  });

  it('is decided by the first rule that allows it', () => {
    const rules = [rule({ name: 'a', protocol: 'udp' }), rule({ name: 'b' }), rule({ name: 'c' })];
    expect(by(evaluate(closedBy(rules), flow('10.77.0.3', '10.77.0.2')))).toBe('b');
  });

  it.each<[string, string, Partial<Flow>, string]>([
    ['10.77.0.3', '10.77.0.2', { protocol: 'icmp', port: null, isEcho: true }, 'always'],
    ['10.77.0.3', '10.77.0.2', { port: 9 }, 'always'],
    ['10.77.0.3', '10.77.0.2', { protocol: 'udp', port: 9 }, 'closed'],
    ['10.77.0.3', '192.168.50.7', { protocol: 'icmp', port: null, isEcho: true }, 'closed'],
    ['192.168.50.7', '10.77.0.2', { port: 9 }, 'closed'],
  ])('from %s to %s of %o is decided by: %s', (from, to, changes, decided) => {
    expect(by(evaluate(closedBy([]), flow(from, to, changes)))).toBe(decided);
  });

  it('is denied to a peer that enforces nothing, where the network requires it, and allowed from it', () => {
    const strict = closedBy([rule({})], true);
    expect(by(evaluate(strict, flow('10.77.0.2', '10.77.0.3')))).toBe('unenforced');
    expect(by(evaluate(strict, flow('10.77.0.3', '10.77.0.2')))).toBe('r');
    expect(by(evaluate(strict, flow('10.77.0.3', '192.168.50.7')))).toBe('r');
  });
});
