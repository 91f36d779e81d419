import type { Actual } from './actual.ts';
import { added, type Change, removed } from './change.ts';
import type { Desired } from './desired.ts';
import { mainRule, tunnelRule } from './full-tunnel.ts';
import { mainPriority, routeProtocol, rulePriority, tunnelTable } from './marks.ts';
import { formatRule, type Rule, sameRule, sameWords } from './rule.ts';
import type { LinkCommand } from './step.ts';

type PlannedRule = readonly [LinkCommand, Change];

/**
 * Policy rules to add, then those to remove. They are the host's, not the interface's, and of all networks one alone has
 * them: where this network neither wants them nor has a route in their table, they are not its business.
 */
export function planRules({ rules }: Pick<Desired, 'rules'>, actual: Pick<Actual, 'routes' | 'rules'>): PlannedRule[] {
  if (rules.length === 0 && !holdsTunnel(actual)) return [];
  const stand = findPairs(actual.rules).find((pair) => rules.length > 0 && isInPlace(pair, actual.rules)) ?? null;
  const wanted = stand === null ? rules : rules.filter((rule) => !isOfPair(rule));
  const additions = wanted
    .filter((rule) => !actual.rules.some((present) => sameRule(present, rule)))
    .map((rule): PlannedRule => [{ add: 'rule', rule }, added('rule', nameRule(rule), 'ip rule', reasonOf(rule))]);
  const keep = [...wanted, ...(stand ?? [])];
  const removals = findOurRules(actual.rules).filter((present) => !keep.some((rule) => sameRule(present, rule)));
  return [...additions, ...removals.map((rule) => planRemoval(rule, 'no rule of the tunnel'))];
}

/** Removes every rule of a full tunnel, the one that leads into it first. */
export function planRuleRemovals({ rules }: Pick<Actual, 'rules'>, reason: string): PlannedRule[] {
  return findOurRules(rules).map((rule) => planRemoval(rule, reason));
}

/** True when a route into our interface is in the full tunnel's table: then its rules are this network's. */
export function holdsTunnel({ routes }: Pick<Actual, 'routes'>): boolean {
  return routes.some(({ table }) => table === tunnelTable);
}

/** What bears our mark, what leads into our table, and what wg-quick made beside that; the last rule asked comes first. */
export function findOurRules(rules: readonly Rule[]): Rule[] {
  const pairs = findPairs(rules).flat();
  return rules
    .filter((rule) => rule.protocol === routeProtocol || rule.table === tunnelTable || pairs.includes(rule))
    .toSorted((a, b) => b.priority - a.priority);
}

/** Wg-quick's two rules for our table, the one made first in front. */
type Pair = readonly [tunnel: Rule, main: Rule];

/**
 * The pairs of rules that wg-quick made: it names neither priority nor protocol, and the kernel puts the second of them in front of
 * the first (fib_default_rule_pref in net/core/fib_rules.c).
 */
function findPairs(rules: readonly Rule[]): Pair[] {
  const unmarked = rules.filter((rule) => rule.protocol !== routeProtocol);
  return unmarked
    .filter((rule) => sameWords(rule, tunnelRule))
    .flatMap((tunnel): Pair[] => {
      const main = unmarked.find((rule) => rule.priority === tunnel.priority - 1 && sameWords(rule, mainRule));
      return main === undefined ? [] : [[tunnel, main]];
    });
}

/** True when wg-quick's pair does what ours would: asked after what is kept out, before the main table, with none of ours in place. */
function isInPlace([tunnel, main]: Pair, rules: readonly Rule[]): boolean {
  const ours = rules.some((rule) => sameRule(rule, tunnelRule)) && rules.some((rule) => sameRule(rule, mainRule));
  return !ours && main.priority > rulePriority.resolver && tunnel.priority < mainPriority;
}

function isOfPair(rule: Rule): boolean {
  return sameRule(rule, mainRule) || sameRule(rule, tunnelRule);
}

function planRemoval(rule: Rule, reason: string): PlannedRule {
  return [{ remove: 'rule', rule }, removed('rule', nameRule(rule), 'ip rule', reason)];
}

/** As `ip rule` prints it. */
function nameRule(rule: Rule): string {
  return [`${rule.priority}: ${formatRule(rule)}`, ...rule.more].join(' ');
}

function reasonOf({ priority }: Rule): string {
  switch (priority) {
    case rulePriority.source:
      return 'what comes in at this address is answered from it';
    case rulePriority.service:
      return 'the control plane is reached outside the tunnel';
    case rulePriority.resolver:
      return 'a resolver is reached outside the tunnel';
    default:
      return 'everything else goes through the tunnel';
  }
}
