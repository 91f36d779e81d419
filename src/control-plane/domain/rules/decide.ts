import type { RulesMode, RuleTest, RuleTestResult } from '../../../contract/rules.ts';
import { quote } from '../../../core/errors/index.ts';
import type { PortRange, Rule } from '../../../core/map/access-rules.ts';
import { probedPort } from '../../../core/rules/evaluate.ts';
import { parseMapSelector } from '../../../core/rules/map-selector.ts';
import { formatPorts, mergePorts, parsePorts } from '../../../core/rules/selector.ts';
import { InvalidRequest } from '../../errors.ts';
import { type Endpoint, listEndpoints, type RuledNetwork } from './endpoints.ts';
import { type Group, type Grouping, groupEndpoints } from './groups.ts';
import type { RuleSet } from './rule-set.ts';

/** Rules with parsed selectors and ports. */
export interface Ruling {
  readonly mode: RulesMode;
  readonly rules: readonly Rule[];
  readonly requiresEnforcement: boolean;
}

export function parseRules({ mode, rules, require_enforcement }: RuleSet): Ruling {
  return {
    mode,
    rules: rules.map(({ name, from, to, protocol, ports }) => ({
      ...{ name, protocol, from: from.map(parseMapSelector), to: to.map(parseMapSelector) },
      ports: ports.map((port) => parsePorts(port)),
    })),
    requiresEnforcement: require_enforcement,
  };
}

/** Connections of one protocol. Without a port, to all ports. */
export interface Kind {
  readonly protocol: 'tcp' | 'udp' | 'icmp';
  readonly port?: number | undefined;
}

/** The part of a kind of connections that is allowed, and the first rule that allows some. */
export interface Verdict {
  readonly allowed: 'all' | 'some' | 'none';
  readonly by: 'open' | 'always' | 'rule' | 'closed' | 'unenforced';
  readonly rule: Rule | null;
  /** The ports that are allowed, for `some`. */
  readonly ports: readonly PortRange[];
}

/**
 * Decides about connections of a kind between two groups, or about any for null, like
 * core/rules/evaluate.ts about a packet.
 */
export function judge(
  { mode, rules, requiresEnforcement }: Ruling,
  places: readonly number[],
  [from, to]: readonly [Group, Group],
  kind: Kind | null,
): Verdict {
  const { protocol, port } = kind ?? {};
  if (mode === 'open') return { allowed: 'all', by: 'open', ...without };
  const isProbe = protocol === 'tcp' && port === probedPort && from.isPeer && to.isPeer;
  if (isProbe) return { allowed: 'all', by: 'always', ...without };
  if (requiresEnforcement && !to.enforces) return { allowed: 'none', by: 'unenforced', ...without };
  const admitting = places.flatMap((place) => {
    const rule = rules[place];
    const isOf = rule !== undefined && (kind === null || rule.protocol === 'any' || rule.protocol === protocol);
    return isOf && (port === undefined || hasPort(rule, port)) ? rule : [];
  });
  const [first] = admitting;
  if (first === undefined) return { allowed: 'none', by: 'closed', ...without };
  const ports = port === undefined ? findPorts(admitting) : null;
  return { allowed: ports === null ? 'all' : 'some', by: 'rule', rule: first, ports: ports ?? [] };
}

const without = { rule: null, ports: [] };

function hasPort({ ports }: Rule, port: number): boolean {
  return ports.length === 0 || ports.some(({ first, last }) => first <= port && port <= last);
}

/** The ports that rules allow together; null for all. */
function findPorts(rules: readonly Rule[]): PortRange[] | null {
  if (rules.some(({ ports }) => ports.length === 0)) return null;
  const ports = mergePorts(rules.flatMap((rule) => rule.ports));
  return ports.length === 1 && ports[0]?.first === 1 && ports[0].last === 65_535 ? null : ports;
}

/** The places of the rules that apply to connections between two groups, ascending. */
function rulesBetween({ from, to }: Grouping, [sender, receiver]: readonly [Group, Group]): number[] {
  const receiving = new Set([...receiver.to, ...to.all]);
  return [...sender.from, ...from.all].filter((place) => receiving.has(place)).sort((one, other) => one - other);
}

type Decided = readonly [Endpoint, Endpoint, Verdict];

/** Decides about the pairs of ends that two selectors name. */
export class Decider {
  readonly #ruling: Ruling;
  readonly #grouping: Grouping;
  #compared = 0;

  /** @param selectors the stored selectors that {@link verdicts} gets later */
  constructor(network: RuledNetwork, set: RuleSet, selectors: readonly string[]) {
    this.#ruling = parseRules(set);
    const named = [
      ...this.#ruling.rules.flatMap(({ from, to }) => [...from, ...to]),
      ...selectors.map(parseMapSelector),
    ];
    this.#grouping = groupEndpoints(listEndpoints(network, named), this.#ruling.rules);
  }

  /** True if a stored selector selects a peer or a part of a route. */
  selectsAny(selector: string): boolean {
    return this.#grouping.select(parseMapSelector(selector)).size > 0;
  }

  /**
   * One pair of ends for each pair of groups, with its verdict.
   * @throws InvalidRequest for too many pairs
   */
  *verdicts(from: string, to: string, kind: Kind, field: string): Generator<Decided> {
    const [senders, receivers] = [from, to].map((text) => this.#grouping.select(parseMapSelector(text)));
    for (const [sender, sending] of senders ?? []) {
      for (const [receiver, receiving] of receivers ?? []) {
        this.#compared += 1;
        if (this.#compared > mostCompared) throw new InvalidRequest({ [field]: [tooMany] });
        const pair = findPair(sending, receiving);
        if (pair === null) continue;
        const groups = [sender, receiver] as const;
        yield [...pair, judge(this.#ruling, rulesBetween(this.#grouping, groups), groups, kind)];
      }
    }
  }
}

const mostCompared = 500_000;
const tooMany = 'names too many pairs of peers that rules tell apart; name fewer peers, or select them by tags';

/** Two ends that are not the same one; null without such a pair. */
function findPair(senders: readonly Endpoint[], receivers: readonly Endpoint[]): [Endpoint, Endpoint] | null {
  for (const sender of senders.slice(0, 2)) {
    const receiver = receivers.find((each) => each !== sender);
    if (receiver !== undefined) return [sender, receiver];
  }
  return null;
}

/**
 * Runs the tests of rules as in a closed network, so that rules can be tested before they apply.
 * A test without a pair passes.
 */
export function runTests(network: RuledNetwork, set: RuleSet, shown: readonly RuleTest[]): RuleTestResult[] {
  const selectors = set.tests.flatMap(({ from, to }) => [from, to]);
  const decider = new Decider(network, { ...set, mode: 'closed' }, selectors);
  return set.tests.map(({ from, to, expect, ...kind }, place) => {
    const test = shown[place] as RuleTest;
    const wanted = expect === 'allow' ? 'all' : 'none';
    let last: Verdict | null = null;
    for (const [sender, receiver, verdict] of decider.verdicts(from, to, kind, `tests.${place}`)) {
      const why = `${sender.selector} to ${receiver.selector}: ${explain(verdict)}`;
      if (verdict.allowed !== wanted) return { ...test, passed: false, why };
      last = verdict;
    }
    return { ...test, passed: true, why: last === null ? 'the selectors name no pair' : explain(last) };
  });
}

export function explain({ allowed, by, rule, ports }: Verdict): string {
  switch (by) {
    case 'open':
      return 'the network is open';
    case 'always':
      return `TCP ${probedPort} between peers is always allowed, for probes`;
    case 'unenforced':
      return 'its host does not enforce rules, and the network requires that';
    case 'closed':
      return 'no rule allows it';
    case 'rule':
      if (allowed === 'all') return `rule ${quote(rule?.name)} allows it`;
      return `the rules allow ${listPorts(ports)} alone (first: rule ${quote(rule?.name)})`;
  }
}

const mostListed = 10;

function listPorts(ports: readonly PortRange[]): string {
  const more = ports.length - mostListed;
  const [first, ...others] = ports.slice(0, mostListed).map(formatPorts);
  const isOne = others.length === 0 && ports[0]?.first === ports[0]?.last;
  return `${isOne ? 'port' : 'ports'} ${[first, ...others].join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
