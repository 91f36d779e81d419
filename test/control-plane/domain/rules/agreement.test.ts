import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AccessChange } from '../../../../src/contract/rules.ts';
import { compareAccess } from '../../../../src/control-plane/domain/rules/compare.ts';
import { Decider, type Kind, parseRules } from '../../../../src/control-plane/domain/rules/decide.ts';
import { type Endpoint, listEndpoints } from '../../../../src/control-plane/domain/rules/endpoints.ts';
import { selects } from '../../../../src/control-plane/domain/rules/groups.ts';
import { listReachable } from '../../../../src/control-plane/domain/rules/reach.ts';
import type { RuleSet } from '../../../../src/control-plane/domain/rules/rule-set.ts';
import type { Flow } from '../../../../src/core/map/access-rules.ts';
import { evaluate } from '../../../../src/core/rules/evaluate.ts';
import { parseMapSelector } from '../../../../src/core/rules/map-selector.ts';
import { parsePorts } from '../../../../src/core/rules/selector.ts';
import { addressOfEnd, evaluateRules, networks, ruleSets, selectors, toMap } from './generated.ts';

const kinds: readonly Kind[] = [
  ...[1, 9, 22, 25, 26, 399, 443, 501, 65_535].flatMap((port) => [
    { protocol: 'tcp' as const, port },
    { protocol: 'udp' as const, port },
  ]),
  { protocol: 'icmp' },
];
const flowOf = ({
  protocol,
  port = null,
}: {
  readonly protocol: Flow['protocol'];
  readonly port?: number | null | undefined;
}) => ({ protocol, port });
const runs = { numRuns: 400 };

function endsOf(network: Parameters<typeof listEndpoints>[0], ...sets: readonly RuleSet[]): Endpoint[] {
  const named = sets.flatMap((set) => parseRules(set).rules.flatMap(({ from, to }) => [...from, ...to]));
  return listEndpoints(network, named);
}

/** Every pair of two ends. */
function* pairsAmong(ends: readonly Endpoint[]): Generator<readonly [Endpoint, Endpoint]> {
  for (const from of ends) for (const to of ends) if (from !== to) yield [from, to];
}

test('who reaches what, and by which rule, is what the evaluator decides about a packet', () => {
  const kindOf = fc.constantFrom(...kinds);
  fc.assert(
    fc.property(networks, ruleSets, kindOf, (network, set, kind) => {
      const ends = endsOf(network, set);
      const map = toMap(network, set);
      const wanted = [...pairsAmong(ends)].flatMap(([from, to]) => {
        const flow = { from: addressOfEnd(from, ends), to: addressOfEnd(to, ends), ...flowOf(kind) };
        const decision = evaluate(map, flow);
        const rule = decision.allowed && decision.by === 'rule' ? decision.rule.name : null;
        return decision.allowed ? [{ from: from.selector, to: to.selector, rule }] : [];
      });
      const { pairs, complete } = listReachable(network, set, kind, null);
      expect(complete).toBe(true);
      expect(new Set(pairs.map((pair) => JSON.stringify(pair)))).toEqual(
        new Set(wanted.map((pair) => JSON.stringify(pair))),
      );
      expect(pairs).toHaveLength(wanted.length);
    }),
    runs,
  );
});

test('the decision about two selectors is that about each pair of their ends', () => {
  fc.assert(
    fc.property(networks, ruleSets, selectors, selectors, fc.constantFrom(...kinds), (network, set, from, to, kind) => {
      const decider = new Decider(network, set, [from, to]);
      const found = [...decider.verdicts(from, to, kind, 'from')].map(([, , { allowed }]) => allowed);
      const named = [...parseRules(set).rules.flatMap((rule) => [...rule.from, ...rule.to]), from, to].map((each) =>
        typeof each === 'string' ? parseMapSelector(each) : each,
      );
      const ends = listEndpoints(network, named);
      const map = toMap(network, set);
      const wanted = [...pairsAmong(ends)].flatMap(([sender, receiver]) => {
        if (!selects(parseMapSelector(from), sender) || !selects(parseMapSelector(to), receiver)) return [];
        const flow = { from: addressOfEnd(sender, ends), to: addressOfEnd(receiver, ends), ...flowOf(kind) };
        return evaluate(map, flow).allowed ? 'all' : 'none';
      });
      expect(new Set(found)).toEqual(new Set(wanted));
    }),
    runs,
  );
});

/** True if an entry of the list is about this flow. */
function hasFlow(
  list: readonly AccessChange[],
  [from, to]: readonly [Endpoint, Endpoint],
  { protocol, port }: Pick<Flow, 'protocol' | 'port'>,
): boolean {
  const isOf = (selector: string, end: Endpoint) => selector === 'any' || selector === end.selector;
  return list.some(
    (change) =>
      isOf(change.from, from) &&
      isOf(change.to, to) &&
      (change.protocol === 'any' || change.protocol === protocol) &&
      (change.ports.length === 0 ||
        change.ports
          .map((text) => parsePorts(text))
          .some(({ first, last }) => port !== null && first <= port && port <= last)),
  );
}

test('a comparison lists what the evaluator allows after a change and not before, and no other', () => {
  fc.assert(
    fc.property(networks, ruleSets, ruleSets, (network, before, after) => {
      const changes = compareAccess(network, before, after);
      expect([changes.gained.length, changes.lost.length]).toEqual([changes.gainedCount, changes.lostCount]);
      const ends = endsOf(network, before, after);
      const [old, next] = [toMap(network, before), toMap(network, after)];
      for (const pair of pairsAmong(ends)) {
        const [from, to] = pair.map((end) => addressOfEnd(end, ends)) as [Flow['from'], Flow['to']];
        for (const flow of [...kinds.map(flowOf), flowOf({ protocol: 'other' })]) {
          const [was, is] = [old, next].map((map) => evaluateRules(map, { from, to, ...flow }).allowed);
          expect([pair, flow, hasFlow(changes.gained, pair, flow)]).toEqual([pair, flow, !was && is]);
          expect([pair, flow, hasFlow(changes.lost, pair, flow)]).toEqual([pair, flow, was && !is]);
        }
      }
    }),
    { numRuns: 150 },
  );
});
