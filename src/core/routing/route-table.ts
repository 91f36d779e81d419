import { mainPriority, routeProtocol, routeTables } from '../host-state/marks.ts';
import { makeRule, type Rule, sameRule } from '../host-state/policy-rule.ts';
import type { Receipt } from '../host-state/receipt.ts';

/** A network of this host, as far as routing tables need it. */
interface TableOwner {
  readonly interface: string;
  readonly createdAt: string;
  readonly receipt: Receipt;
}

/**
 * Returns the table of a network's accepted routes: that of its receipt, or the lowest free one.
 * Networks without a table get theirs in the order of joining, so that all compute the same. Null
 * if all are taken. `lines` are the tables with routes into the interface: an earlier version of
 * cpn drops the table from the receipt.
 */
export function assignTable(link: string, networks: readonly TableOwner[], lines: readonly string[]): string | null {
  const taken = new Map<string, string>();
  const byAge = networks.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
  for (const network of byAge) {
    const table = writtenTables(network).find((each) => !taken.has(each));
    if (table !== undefined) taken.set(table, network.interface);
  }
  for (const { interface: owner } of byAge) {
    if ([...taken.values()].includes(owner)) continue;
    const own = owner === link ? lines.filter(isRouteTable) : [];
    const free = [...own, ...allTables].find((table) => !taken.has(table));
    if (free !== undefined) taken.set(free, owner);
  }
  return [...taken].find(([, owner]) => owner === link)?.[0] ?? null;
}

const allTables = Array.from({ length: routeTables.count }, (_, index) => String(routeTables.first + index));

function keyOf({ createdAt, interface: link }: TableOwner): string {
  return `${createdAt} ${link}`;
}

function writtenTables({ receipt }: TableOwner): string[] {
  return receipt.flatMap((entry) => (entry.made === 'rules' && entry.table ? [entry.table] : [])).filter(isRouteTable);
}

/** True if a network of ours may have its accepted routes in this table. */
export function isRouteTable(table: string | null): boolean {
  return table !== null && allTables.includes(table);
}

/**
 * Returns the rules that lead to a network's table, in order. Routes of the main table except its
 * default route come first: local networks have theirs there.
 */
export function rulePairOf(table: string): readonly [main: Rule, own: Rule] {
  const priority = routeTables.firstPriority + 2 * (Number(table) - routeTables.first);
  return [makeRule(priority, { table: 'main', suppress: 0 }), makeRule(priority + 1, { table })];
}

/** True for a rule of ours that leads to some network's table and belongs to no full tunnel. */
export function isOfPair(rule: Rule): boolean {
  const table = allTables[Math.floor((rule.priority - routeTables.firstPriority) / 2)];
  return table !== undefined && findPairOf(table, [rule]).length > 0;
}

/** The present rules for this table in order of removal: first the rule that leads into it. */
export function findPairOf(table: string, rules: readonly Rule[]): Rule[] {
  const [main, own] = rulePairOf(table);
  return [own, main].flatMap((each) => rules.filter((rule) => rule.protocol === routeProtocol && sameRule(rule, each)));
}

/** True if unmarked packets without a chosen source reach this table before the default route. */
export function isTableUsed(table: string, rules: readonly Rule[]): boolean {
  return rules.some(
    (rule) =>
      rule.table === table &&
      rule.priority < mainPriority &&
      [rule.from, rule.to, rule.fwmark].every((each) => each === null) &&
      !rule.not &&
      rule.more.length === 0,
  );
}
