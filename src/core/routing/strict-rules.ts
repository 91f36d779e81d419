import { rulePriority, strictPriority } from '../host-state/marks.ts';
import { makeRule, type Rule, sameRule } from '../host-state/policy-rule.ts';
import type { Address, Prefix } from '../net/cidr.ts';
import { covers } from '../net/cidr.ts';
import { isOfPair, isRouteTable } from './route-table.ts';
import { mainRule } from './tunnel-rules.ts';

/** What a strict tunnel leaves outside. */
export interface StrictExceptions {
  /** The prefixes that the main table may lead outside. */
  readonly prefixes: readonly Prefix[];
  /** The tables of accepted routes, of all networks of this host. */
  readonly tables: readonly string[];
}

/**
 * Returns the rules of a strict tunnel. DHCP clients add routes to the main table, so these rules
 * use it for exceptions only. They precede the rules that lead to tables of accepted routes, and
 * lead to those tables themselves. `rules` are those of a tunnel that is not strict.
 */
export function strictRules(rules: readonly Rule[], { prefixes, tables }: StrictExceptions): Rule[] {
  return rules.flatMap((rule) => {
    if (!sameRule(rule, mainRule)) return [{ ...rule, priority: moveForward(rule.priority) }];
    return [
      ...prefixes.map((to) => makeRule(strictPriority.main, { to, table: 'main', suppress: 0 })),
      ...tables.map((table) => makeRule(strictPriority.accepted, { table })),
    ];
  });
}

/**
 * Returns the tables of accepted routes: this network's (`own`, or null), and those to which rules
 * of other networks lead.
 */
export function findAcceptedTables(rules: readonly Rule[], own: string | null): string[] {
  const tables = rules.filter(isOfPair).flatMap(({ table }) => (table !== null && isRouteTable(table) ? [table] : []));
  return [...new Set([...(own === null ? [] : [own]), ...tables])].toSorted();
}

export function areStrict(rules: readonly Rule[]): boolean {
  return rules.length > 0 && !rules.some((rule) => sameRule(rule, mainRule));
}

/** True if a rule of a full tunnel keeps this address outside. */
export function isKeptOut(address: Address, rules: readonly Rule[]): boolean {
  return rules.some(({ to, table, goto }) => (table === 'main' || goto !== null) && to !== null && covers(to, address));
}

/** Returns the priority that a strict tunnel's rule has in a tunnel that is not strict. */
export function usualPriority(priority: number): number {
  const place = places.find((each) => strictPriority[each] === priority);
  return place === undefined ? priority : rulePriority[place];
}

const places = ['source', 'service', 'resolver', 'main', 'tunnel'] as const;

function moveForward(priority: number): number {
  const place = places.find((each) => rulePriority[each] === priority);
  return place === undefined ? priority : strictPriority[place];
}
