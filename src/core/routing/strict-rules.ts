import { rulePriority, strictPriority } from '../host-state/marks.ts';
import { makeRule, type Rule, sameRule } from '../host-state/policy-rule.ts';
import type { Address, Prefix } from '../net/cidr.ts';
import { covers } from '../net/cidr.ts';
import { isOfPair, isRouteTable } from './route-table.ts';
import { mainRule } from './tunnel-rules.ts';

/** What a strict tunnel leaves to the rest of the host. */
export interface StrictExceptions {
  /** What the main table may lead outside. */
  readonly prefixes: readonly Prefix[];
  /** The tables of accepted routes, of all networks of this host. */
  readonly tables: readonly string[];
}

/**
 * The rules of a strict tunnel. The main table, into which DHCP clients put routes, is asked for the exceptions alone, and by no rule of
 * ours before: these rules come ahead of those that lead to the tables of accepted routes, and lead there themselves.
 *
 * @param rules those of a tunnel that is not strict
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
 * The tables of accepted routes: this network's own, and those that rules of others lead to.
 *
 * @param own null where this network has none
 */
export function findAcceptedTables(rules: readonly Rule[], own: string | null): string[] {
  const tables = rules.filter(isOfPair).flatMap(({ table }) => (table !== null && isRouteTable(table) ? [table] : []));
  return [...new Set([...(own === null ? [] : [own]), ...tables])].toSorted();
}

/** True for the rules of a strict tunnel. */
export function areStrict(rules: readonly Rule[]): boolean {
  return rules.length > 0 && !rules.some((rule) => sameRule(rule, mainRule));
}

/** True where a rule of a full tunnel keeps this address outside. */
export function isKeptOut(address: Address, rules: readonly Rule[]): boolean {
  return rules.some(({ to, table, goto }) => (table === 'main' || goto !== null) && to !== null && covers(to, address));
}

/** What a rule of a strict tunnel would have as a priority in one that is not strict. */
export function usualPriority(priority: number): number {
  const place = places.find((each) => strictPriority[each] === priority);
  return place === undefined ? priority : rulePriority[place];
}

const places = ['source', 'service', 'resolver', 'main', 'tunnel'] as const;

function moveForward(priority: number): number {
  const place = places.find((each) => rulePriority[each] === priority);
  return place === undefined ? priority : strictPriority[place];
}
