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
 * Policy rules to add, then those to remove. They are the host's, not the interface's, and of all networks one alone has
 * them: where this network neither wants them nor has a route in their table, they are not its business.
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

/** The rules that lead to the table of accepted routes, for as long as one is to be in it. */
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

/** Removes every rule of a full tunnel, the one that leads into it first. */
export function planRuleRemovals({ rules }: Pick<Actual, 'rules'>, reason: string): PlannedRule[] {
  return findTunnelRules(rules).map((rule) => planRemoval(rule, reason));
}

/** True when a route into our interface is in the full tunnel's table: then its rules are this network's. */
export function holdsTunnel({ routes }: Pick<Actual, 'routes'>): boolean {
  return routes.some(({ table }) => table === tunnelTable);
}

/** Those of a full tunnel among them. */
function findTunnelRules(rules: readonly Rule[]): Rule[] {
  return findOurRules(rules).filter((rule) => !isOfPair(rule));
}

/** True when wg-quick's pair does what ours would: asked after what is kept out, before the main table, with none of ours in place. */
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
  if (isNop(rule)) return 'from here the rules of this host decide';
  if (rule.mask !== null) return 'what began outside the tunnel is answered outside';
  switch (usualPriority(rule.priority)) {
    case rulePriority.source:
      return 'what comes in at this address is answered from it';
    case rulePriority.service:
      return 'the control plane, or the proxy to it, is reached outside the tunnel';
    case rulePriority.resolver:
      return 'a resolver is reached outside the tunnel';
    case rulePriority.main:
      return 'the main table is asked before the tunnel';
    case rulePriority.last:
      return 'what this host has no other route for goes through the tunnel';
    default:
      return 'everything else goes through the tunnel';
  }
}
