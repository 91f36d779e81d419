import type { AccessRules, Rule, Selector } from '../map/access-rules.ts';
import { type Family, familyOf, type Prefix } from '../net/cidr.ts';
import { type NumberRange, numbersOf, outsideOf, splitByCoverage } from '../net/number-ranges.ts';

export type Direction = 'inward' | 'outward';

/** The indexes of rules with something as a destination (`inward`), and as a sender. */
type Level = Readonly<Record<Direction, readonly number[]>>;

/** Addresses with the same rules. */
export interface Layer {
  readonly ranges: NumberRange[];
  readonly rules: Level;
  /** The index of an earlier layer whose rules apply too: that of a wider prefix. */
  readonly wider?: number;
}

interface RoutePart extends NumberRange {
  /** Those of the prefixes that rules name and that have the part, the widest first. */
  readonly levels: readonly Level[];
}

/** A prefix that rules name; null for a route that the host serves. */
interface Marked extends NumberRange {
  readonly level: Level | null;
}

/** Splits routes where the rules that select their addresses change. Prefixes nest. */
function splitRoutes(served: readonly Prefix[], cidr: Prefix, { rules }: AccessRules): RoutePart[] {
  const named = new Map<string, NumberRange & { readonly level: Record<Direction, number[]> }>();
  for (const [index, rule] of rules.entries()) {
    for (const direction of ['inward', 'outward'] as const) {
      for (const selector of localSelectors(rule, direction)) {
        const range = served.length === 0 ? null : rangeOfSelector(selector, familyOf(cidr));
        if (range === null) continue;
        const key = `${range.first} ${range.last}`;
        const level = named.get(key)?.level ?? { inward: [], outward: [] };
        if (level[direction].at(-1) !== index) level[direction].push(index);
        named.set(key, { ...range, level });
      }
    }
  }
  const within = served.map((route): Marked => ({ ...numbersOf(route), level: null }));
  return splitByCoverage<Marked>([...within, ...named.values()])
    .filter(({ covering }) => covering.some(({ level }) => level === null))
    .flatMap(({ first, last, covering }) => {
      const bySize = covering.toSorted((one, other) => (other.last - other.first > one.last - one.first ? 1 : -1));
      const levels = bySize.flatMap(({ level }) => level ?? []);
      return outsideOf({ first, last }, numbersOf(cidr)).map((range) => ({ ...range, levels }));
    });
}

/** The kernel follows at most 16 jumps (NFT_JUMP_STACK_SIZE, net/netfilter/nf_tables.h). */
const mostLevels = 8;

/**
 * Groups the parts of routes by their rules, after the layer `own`. A prefix has only the rules
 * that name it, and continues in the layer of the next wider one: else each of many parts would
 * repeat what a route allows.
 */
export function layRoutes(own: Layer, served: readonly Prefix[], cidr: Prefix, rules: AccessRules): Layer[] {
  const layers = [own];
  const byLevel = new Map<Level, number>();
  const byRules = new Map<string, number>();
  const placeOf = (levels: readonly Level[]): number => {
    const level = levels.at(-1) ?? noRules;
    const known = byLevel.get(level);
    if (known !== undefined) return known;
    const isWidest = levels.length <= 1 || levels.length % mostLevels === 1;
    const joined = isWidest ? joinLevels(levels) : level;
    const wider = isWidest ? undefined : placeOf(levels.slice(0, -1));
    const key = `${wider} ${joined.inward.join()} ${joined.outward.join()}`;
    const place = byRules.get(key) ?? layers.length;
    if (place === layers.length) layers.push({ ranges: [], rules: joined, ...(wider !== undefined && { wider }) });
    byRules.set(key, place);
    byLevel.set(level, place);
    return place;
  };
  for (const { levels, ...range } of splitRoutes(served, cidr, rules)) layers[placeOf(levels)]?.ranges.push(range);
  return layers;
}

const noRules: Level = { inward: [], outward: [] };

function joinLevels(levels: readonly Level[]): Level {
  const all = (direction: Direction) => [...new Set(levels.flatMap((level) => level[direction]))].sort((a, b) => a - b);
  return { inward: all('inward'), outward: all('outward') };
}

export function localSelectors(rule: Rule, direction: Direction): readonly Selector[] {
  return direction === 'inward' ? rule.to : rule.from;
}

/** The addresses outside the network that a selector names; for `any` of them, all. */
export function rangeOfSelector(selector: Selector, family: Family): NumberRange | null {
  if (selector.kind === 'any') return { first: 0n, last: family === 4 ? 2n ** 32n - 1n : 2n ** 128n - 1n };
  if (selector.kind !== 'route' && selector.kind !== 'cidr') return null;
  return familyOf(selector.prefix) === family ? numbersOf(selector.prefix) : null;
}
