import type { Actual } from '../host-state/actual.ts';
import { mainPriority, rulePriority, tunnelTable } from '../host-state/marks.ts';
import { formatRule, isNop, type Rule, sameRule } from '../host-state/policy-rule.ts';
import { findPairOf, isOfPair, rulePairOf } from '../routing/route-table.ts';
import { usualPriority } from '../routing/strict-rules.ts';
import { findOurRules, findPairs, mainRule, type RulePair, rulesBehind, tunnelRule } from '../routing/tunnel-rules.ts';
import { added, type Change, removed } from './change.ts';
import type { Desired } from './desired.ts';
import type { LinkCommand } from './step.ts';

type PlannedRule = readonly [LinkCommand, Change];

/**
 * Plans policy rules: additions, then removals. The rules serve at most one network of the host.
 * They stay if this network neither needs them nor has a route in their table, because they are
 * then another network's.
 */
export function planRules({ rules }: Pick<Desired, 'rules'>, actual: Pick<Actual, 'routes' | 'rules'>): PlannedRule[] {
  if (rules.length === 0 && !holdsTunnel(actual)) return [];
  const stand =
    findPairs(actual.rules).find((pair) => rules.includes(mainRule) && isInPlace(pair, actual.rules)) ?? null;
  const wanted = stand === null ? rules : rulesBehind(stand, rules);
  const additions = wanted
    .filter((rule) => !actual.rules.some((present) => sameRule(present, rule)))
    .map((rule): PlannedRule => [{ add: 'rule', rule }, added('rule', nameRule(rule), 'ip rule', reasonOf(rule))]);
  const keep = [...wanted, ...(stand ?? [])];
  const removals = findTunnelRules(actual.rules).filter((present) => !keep.some((rule) => sameRule(present, rule)));
  return [...additions, ...removals.map((rule) => planRemoval(rule, 'no rule of the tunnel'))];
}

/** Plans the rules that lead to the table of accepted routes, as long as it has any route. */
export function planPair(table: string | null, isUsed: boolean, { rules }: Pick<Actual, 'rules'>): PlannedRule[] {
  if (table === null) return [];
  const wanted = isUsed ? rulePairOf(table) : [];
  const reason = 'a local network comes before an accepted route';
  const additions = wanted
    .filter((rule) => !rules.some((present) => sameRule(present, rule)))
    .map((rule): PlannedRule => [{ add: 'rule', rule }, added('rule', nameRule(rule), 'ip rule', reason)]);
  const removals = findPairOf(table, rules).filter((present) => !wanted.some((rule) => sameRule(present, rule)));
  return [...additions, ...removals.map((rule) => planRemoval(rule, 'no accepted route is in its table'))];
}

/** Removes the rules that lead to a table of accepted routes. */
export function planPairRemovals(table: string, { rules }: Pick<Actual, 'rules'>, reason: string): PlannedRule[] {
  return findPairOf(table, rules).map((rule) => planRemoval(rule, reason));
}

/** Removes every rule of a full tunnel, starting with the rule that leads into it. */
export function planRuleRemovals({ rules }: Pick<Actual, 'rules'>, reason: string): PlannedRule[] {
  return findTunnelRules(rules).map((rule) => planRemoval(rule, reason));
}

/** True if a route into our interface is in the full tunnel's table, whose rules are then ours. */
export function holdsTunnel({ routes }: Pick<Actual, 'routes'>): boolean {
  return routes.some(({ table }) => table === tunnelTable);
}

function findTunnelRules(rules: readonly Rule[]): Rule[] {
  return findOurRules(rules).filter((rule) => !isOfPair(rule));
}

/**
 * True if wg-quick's two rules can serve as ours: they come after the exceptions and before `main`,
 * and our own two are absent.
 */
function isInPlace([tunnel, main]: RulePair, rules: readonly Rule[]): boolean {
  const ours = rules.some((rule) => sameRule(rule, tunnelRule)) && rules.some((rule) => sameRule(rule, mainRule));
  return !ours && main.priority > rulePriority.resolver && tunnel.priority < mainPriority;
}

function planRemoval(rule: Rule, reason: string): PlannedRule {
  return [{ remove: 'rule', rule }, removed('rule', nameRule(rule), 'ip rule', reason)];
}

/** As `ip rule` prints it. */
function nameRule(rule: Rule): string {
  return [`${rule.priority}: ${formatRule(rule)}`, ...rule.more].join(' ');
}

function reasonOf(rule: Rule): string {
  if (isNop(rule)) return 'the rules of this host follow here';
  if (rule.mask !== null) return 'replies to connections from outside the tunnel stay outside';
  switch (usualPriority(rule.priority)) {
    case rulePriority.source:
      return 'replies to packets at this address leave from it';
    case rulePriority.service:
      return 'the control plane, or the proxy to it, is reached outside the tunnel';
    case rulePriority.resolver:
      return 'a resolver is reached outside the tunnel';
    case rulePriority.main:
      return 'the main table comes before the tunnel';
    case rulePriority.last:
      return 'destinations without another route go through the tunnel';
    default:
      return 'everything else goes through the tunnel';
  }
}
