import { type AddressRange, type Family, familyOf, lengthOf, type Prefix, rangeOf } from './cidr.ts';

interface RangeEntry<T> extends AddressRange {
  readonly value: T;
}

/**
 * Values by prefix, found by shared addresses. Prefixes are nested or disjoint, so a prefix that
 * overlaps another starts in it, or is one of the few wider prefixes that start at or before it.
 */
export class PrefixIndex<T> {
  readonly #sorted: Readonly<Record<Family, readonly RangeEntry<T>[]>>;
  /** By length and first address. The first of two equal prefixes wins. */
  readonly #byPlace = new Map<string, T>();
  readonly #lengths: Readonly<Record<Family, readonly number[]>>;

  constructor(entries: Iterable<readonly [Prefix, T]>) {
    const sorted: Record<Family, RangeEntry<T>[]> = { 4: [], 6: [] };
    const lengths: Record<Family, Set<number>> = { 4: new Set(), 6: new Set() };
    for (const [prefix, value] of entries) {
      const family = familyOf(prefix);
      const range = rangeOf(prefix);
      sorted[family].push({ ...range, value });
      lengths[family].add(lengthOf(prefix));
      const place = placeOf(family, lengthOf(prefix), range.first);
      if (!this.#byPlace.has(place)) this.#byPlace.set(place, value);
    }
    for (const family of [4, 6] as const)
      sorted[family].sort((a, b) => (a.first < b.first ? -1 : Number(a.first > b.first)));
    this.#sorted = sorted;
    this.#lengths = { 4: [...lengths[4]], 6: [...lengths[6]] };
  }

  /** The value of a prefix within this one, or null. */
  findWithin(prefix: Prefix): T | null {
    const entries = this.#sorted[familyOf(prefix)];
    const { first, last } = rangeOf(prefix);
    let [low, high] = [0, entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((entries[middle]?.first ?? first) < first) low = middle + 1;
      else high = middle;
    }
    // A wider prefix may start at the same address.
    for (; low < entries.length; low += 1) {
      const entry = entries[low];
      if (entry === undefined || entry.first > last) return null;
      if (entry.last <= last) return entry.value;
    }
    return null;
  }

  /** The value of a prefix that shares an address with this one, or null. */
  findOverlap(prefix: Prefix): T | null {
    return this.findCover(prefix) ?? this.findWithin(prefix);
  }

  /** The value of a prefix that contains or equals this one, or null. */
  findCover(prefix: Prefix): T | null {
    const family = familyOf(prefix);
    const length = lengthOf(prefix);
    const { first } = rangeOf(prefix);
    for (const wider of this.#lengths[family]) {
      if (wider > length) continue;
      const host = BigInt((family === 4 ? 32 : 128) - wider);
      const found = this.#byPlace.get(placeOf(family, wider, (first >> host) << host));
      if (found !== undefined) return found;
    }
    return null;
  }
}

function placeOf(family: Family, length: number, first: bigint): string {
  return `${family} ${length} ${first}`;
}
