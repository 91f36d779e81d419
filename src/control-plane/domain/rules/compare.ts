import { type AccessChange, mostAccessChanges } from '../../../contract/rules.ts';
import { type Difference, Differences, none } from './differences.ts';
import { listEndpoints, type RuledNetwork } from './endpoints.ts';
import { type Group, type Grouping, groupEndpoints, pushTo } from './groups.ts';
import type { RuleSet } from './rule-set.ts';

export interface AccessChanges {
  readonly gained: AccessChange[];
  readonly lost: AccessChange[];
  readonly gainedCount: number;
  readonly lostCount: number;
  /** False if rules tell apart too many pairs to compare all of them. */
  readonly complete: boolean;
}

/** The pairs of groups that are compared one by one: half a second. */
const mostCompared = 300_000;

type Orientation = 'from' | 'to';
const kinds = ['gained', 'lost'] as const;

/**
 * Lists the connections that a change of rules allows and ends. An end that changes the same for
 * all others is one entry with `any`. Never filtered are probes, which are left out.
 */
export function compareAccess(network: RuledNetwork, before: RuleSet, after: RuleSet): AccessChanges {
  const comparison = new Comparison(network, before, after);
  // The orientation with fewer entries is the one in which more ends change the same for all.
  const [from, to] = [comparison.count('from'), comparison.count('to')];
  const isFewer = !from.complete || !to.complete || from.gained + from.lost <= to.gained + to.lost;
  const lists = isFewer ? comparison.list('from', from) : comparison.list('to', to);
  const { gained, lost, complete } = isFewer ? from : to;
  return { ...lists, gainedCount: gained, lostCount: lost, complete };
}

/** The differences between one group and all ends on the other side. */
interface Row {
  readonly group: Group;
  /** The groups with rules of their own for this row. */
  readonly touched: ReadonlyMap<Group, Difference>;
  /** All other ends, by whether their hosts enforce rules, with their number. */
  readonly rest: ReadonlyMap<boolean, { readonly difference: Difference; readonly ends: number }>;
  /** The difference for all other ends; null if there are several. */
  readonly same: Difference | null;
}

interface Counts {
  readonly gained: number;
  readonly lost: number;
  readonly complete: boolean;
  /** The difference of every pair; null if there are several. */
  readonly uniform: Difference | null;
}

class Comparison {
  readonly #differences: Differences;
  readonly #grouping: Grouping;
  /** The number of ends, by whether their hosts enforce rules. */
  readonly #ends: ReadonlyMap<boolean, number>;

  constructor(network: RuledNetwork, before: RuleSet, after: RuleSet) {
    this.#differences = new Differences(before, after);
    const { rules } = this.#differences;
    const selectors = rules.flatMap(({ from, to }) => [...from, ...to]);
    this.#grouping = groupEndpoints(listEndpoints(network, selectors), rules);
    const byEnforcement = Map.groupBy(this.#grouping.groups, ({ enforces }) => enforces);
    this.#ends = new Map([...byEnforcement].map(([enforces, groups]) => [enforces, sumMembers(groups)]));
  }

  count(orientation: Orientation): Counts {
    let [gained, lost, compared] = [0, 0, 0];
    const seen = new Set<Difference | null>();
    for (const row of this.#rows(orientation)) {
      compared += row.touched.size;
      if (compared > mostCompared) return { gained, lost, complete: false, uniform: null };
      const size = row.group.members.length;
      seen.add(row.same);
      const parts = row.same === null ? pairsOf(row) : [[1, row.same] as const];
      for (const [pairs, difference] of parts) {
        gained += size * pairs * difference.gained.length;
        lost += size * pairs * difference.lost.length;
      }
    }
    const [uniform = null] = seen.size === 1 ? seen : [];
    const counts = uniform === null ? { gained, lost } : countOf(uniform);
    return { ...counts, complete: true, uniform };
  }

  list(orientation: Orientation, { uniform, ...counts }: Counts): Pick<AccessChanges, 'gained' | 'lost'> {
    const lists = { gained: [] as AccessChange[], lost: [] as AccessChange[] };
    const isFull = () => kinds.every((kind) => lists[kind].length >= Math.min(counts[kind], mostAccessChanges));
    const add = (one: string, other: string, difference: Difference) => {
      const [from, to] = orientation === 'from' ? [one, other] : [other, one];
      for (const kind of kinds) {
        const room = mostAccessChanges - lists[kind].length;
        lists[kind].push(...difference[kind].slice(0, room).map((change) => ({ from, to, ...change })));
      }
    };
    if (uniform !== null) add('any', 'any', uniform);
    else {
      for (const row of this.#rows(orientation)) {
        if (isFull()) break;
        this.#listRow(row, add, isFull);
      }
    }
    return lists;
  }

  #listRow(row: Row, add: (one: string, other: string, difference: Difference) => void, isFull: () => boolean): void {
    const { group, same, touched, rest } = row;
    if (same === none) return;
    const members = group.members.slice(0, mostAccessChanges);
    if (same !== null) {
      for (const end of members) add(end.selector, 'any', same);
      return;
    }
    for (const column of this.#grouping.groups) {
      const difference = touched.get(column) ?? rest.get(column.enforces)?.difference ?? none;
      if (difference === none) continue;
      if (isFull()) return;
      let left = mostAccessChanges;
      for (const end of members) {
        if (left <= 0) break;
        for (const other of column.members.slice(0, left + 1)) {
          if (other === end) continue;
          add(end.selector, other.selector, difference);
          left -= 1;
        }
      }
    }
  }

  *#rows(orientation: Orientation): Generator<Row> {
    for (const group of this.#grouping.groups) yield this.#makeRow(orientation, group);
  }

  #makeRow(orientation: Orientation, group: Group): Row {
    const [own, others] = [this.#grouping[orientation], this.#grouping[orientation === 'from' ? 'to' : 'from']];
    // For each side, its rules for all come last: equal sets of rules have the same order.
    const places = [...group[orientation], ...own.all];
    if (this.#differences.areNone(places)) return { group, touched: new Map(), rest: new Map(), same: none };
    const isForAll = new Set(others.all);
    const wide = places.filter((place) => isForAll.has(place));
    const rulesOf = new Map<Group, number[]>();
    for (const place of places) {
      if (isForAll.has(place)) continue;
      for (const column of others.groups[place] ?? []) pushTo(rulesOf, column, place);
    }
    const isEnforced = (enforces: boolean) => (orientation === 'from' ? enforces : group.enforces);
    const ends = new Map(this.#ends);
    const leaveOut = ({ enforces }: Group, count: number) => ends.set(enforces, (ends.get(enforces) ?? 0) - count);
    if (!rulesOf.has(group)) leaveOut(group, 1);
    const touched = new Map<Group, Difference>();
    for (const [column, rules] of rulesOf) {
      leaveOut(column, column.members.length);
      touched.set(column, this.#differences.between([...wide, ...rules], isEnforced(column.enforces)));
    }
    const rest = new Map(
      [...ends].map(([enforces, count]) => [
        enforces,
        { difference: this.#differences.between(wide, isEnforced(enforces)), ends: count },
      ]),
    );
    const found = new Set(
      pairsOf({ group, touched, rest }).flatMap(([pairs, difference]) => (pairs > 0 ? difference : [])),
    );
    const [same = none] = found;
    return { group, touched, rest, same: found.size > 1 ? null : same };
  }
}

/** The number of ends that each member of a row has a difference with, for each difference. */
function pairsOf({ group, touched, rest }: Omit<Row, 'same'>): (readonly [number, Difference])[] {
  const own = (column: Group) => column.members.length - (column === group ? 1 : 0);
  return [
    ...[...touched].map(([column, difference]) => [own(column), difference] as const),
    ...[...rest.values()].map(({ ends, difference }) => [ends, difference] as const),
  ];
}

function countOf({ gained, lost }: Difference) {
  return { gained: gained.length, lost: lost.length };
}

function sumMembers(groups: readonly Group[]): number {
  return groups.reduce((sum, { members }) => sum + members.length, 0);
}
