import type { Rule, Selector } from '../../../core/map/access-rules.ts';
import { comparePrefixes, covers, type Prefix } from '../../../core/net/cidr.ts';
import type { Endpoint } from './endpoints.ts';

/** Ends of connections that the same rules select: all pairs of two groups have the same rules. */
export interface Group {
  readonly members: readonly Endpoint[];
  readonly isPeer: boolean;
  /** False for a peer whose host does not enforce rules. */
  readonly enforces: boolean;
  /** The places of rules that select it as sender, ascending, without those from `any`. */
  readonly from: readonly number[];
  readonly to: readonly number[];
}

export interface Side {
  /** The places of rules that select all on this side. */
  readonly all: readonly number[];
  /** The groups that a rule selects on this side, by the place of the rule; none for `any`. */
  readonly groups: readonly (readonly Group[])[];
}

export interface Grouping {
  readonly groups: readonly Group[];
  readonly from: Side;
  readonly to: Side;
  /** The groups of the ends that a selector selects, each with those ends. */
  select(selector: Selector): Map<Group, readonly Endpoint[]>;
}

/** Peers with equal tags of those in use, or one end. */
interface Unit {
  readonly members: Endpoint[];
  readonly isPeer: boolean;
  readonly enforces: boolean;
  readonly from: number[];
  readonly to: number[];
}

/** Groups the ends of a network by the rules that select them. */
export function groupEndpoints(endpoints: readonly Endpoint[], rules: readonly Rule[]): Grouping {
  const selectors = rules.flatMap(({ from, to }) => [...from, ...to]);
  const units = makeUnits(endpoints, selectors);
  const find = createFinder(units);
  for (const side of ['from', 'to'] as const) {
    for (const [place, rule] of rules.entries()) {
      if (rule[side].some(({ kind }) => kind === 'any')) continue;
      for (const unit of new Set(rule[side].flatMap(find))) unit[side].push(place);
    }
  }
  const merged = Map.groupBy(units, ({ isPeer, enforces, from, to }) => `${isPeer}${enforces} ${from} ${to}`);
  const groups = [...merged.values()].map((same): Group => {
    const [first = { isPeer: false, enforces: false, from: [], to: [] }] = same;
    return { ...first, members: same.flatMap(({ members }) => members) };
  });
  return { groups, from: sideOf(groups, rules, 'from'), to: sideOf(groups, rules, 'to'), select: selectIn(groups) };
}

function sideOf(groups: readonly Group[], rules: readonly Rule[], side: 'from' | 'to'): Side {
  const selected: Group[][] = rules.map(() => []);
  for (const group of groups) for (const place of group[side]) selected[place]?.push(group);
  const all = rules.flatMap((rule, place) => (rule[side].some(({ kind }) => kind === 'any') ? place : []));
  return { all, groups: selected };
}

function makeUnits(endpoints: readonly Endpoint[], selectors: readonly Selector[]): Unit[] {
  const tags = new Set(selectors.flatMap((selector) => (selector.kind === 'tag' ? selector.tag : [])));
  const ids = new Set(selectors.flatMap((selector) => (selector.kind === 'peer' ? selector.id : [])));
  const units = Map.groupBy(endpoints, ({ peer, selector }) => {
    if (peer === null) return selector;
    const used = peer.tags.filter((tag) => tags.has(tag)).sort();
    return `${ids.has(peer.id) ? peer.id : ''} ${peer.enforcesRules} ${used}`;
  });
  return [...units.values()].map((members) => {
    const peer = members[0]?.peer ?? null;
    return { members, isPeer: peer !== null, enforces: peer?.enforcesRules ?? true, from: [], to: [] };
  });
}

/** Finds the units that a selector selects. All members of a unit answer to the same selectors. */
function createFinder(units: readonly Unit[]): (selector: Selector) => readonly Unit[] {
  const byTag = new Map<string, Unit[]>();
  const byId = new Map<number, Unit>();
  const ranges: (readonly [Prefix, Unit])[] = [];
  for (const unit of units) {
    for (const tag of unit.members[0]?.peer?.tags ?? []) pushTo(byTag, tag, unit);
    for (const { peer, prefix } of unit.members) {
      if (peer !== null) byId.set(peer.id, unit);
      if (prefix !== null) ranges.push([prefix, unit]);
    }
  }
  ranges.sort(([one], [other]) => comparePrefixes(one, other));
  const covered = new Map<Prefix, readonly Unit[]>();
  return (selector) => {
    switch (selector.kind) {
      case 'peer': {
        const unit = byId.get(Number(selector.id));
        return unit === undefined ? [] : [unit];
      }
      case 'tag':
        return byTag.get(selector.tag) ?? [];
      case 'route':
      case 'cidr': {
        const { prefix } = selector;
        const found = covered.get(prefix) ?? listCovered(ranges, prefix);
        covered.set(prefix, found);
        return found;
      }
      default:
        return [];
    }
  };
}

/** Those that a prefix covers follow each other where they are sorted. */
function listCovered(sorted: readonly (readonly [Prefix, Unit])[], prefix: Prefix): Unit[] {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (comparePrefixes((sorted[middle] as readonly [Prefix, Unit])[0], prefix) < 0) low = middle + 1;
    else high = middle;
  }
  const found: Unit[] = [];
  for (let place = low; place < sorted.length; place += 1) {
    const [each, unit] = sorted[place] as readonly [Prefix, Unit];
    if (!covers(prefix, each)) break;
    found.push(unit);
  }
  return found;
}

export function selects(selector: Selector, { peer, prefix }: Endpoint): boolean {
  switch (selector.kind) {
    case 'any':
      return true;
    case 'peer':
      return peer?.id === selector.id;
    case 'tag':
      return peer?.tags.includes(selector.tag) ?? false;
    case 'route':
    case 'cidr':
      return prefix !== null && covers(selector.prefix, prefix);
    case 'gone':
      return false;
  }
}

function selectIn(groups: readonly Group[]): Grouping['select'] {
  return (selector) => {
    const found = new Map<Group, readonly Endpoint[]>();
    for (const group of groups) {
      const members = group.members.filter((end) => selects(selector, end));
      if (members.length > 0) found.set(group, members);
    }
    return found;
  };
}

export function pushTo<Key, Value>(map: Map<Key, Value[]>, key: Key, value: Value): void {
  const values = map.get(key);
  if (values) values.push(value);
  else map.set(key, [value]);
}
