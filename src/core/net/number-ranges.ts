import { type Prefix, rangeOf } from './cidr.ts';

/** Consecutive addresses as numbers, both included. */
export interface NumberRange {
  readonly first: bigint;
  readonly last: bigint;
}

/** The addresses of a prefix. */
export function numbersOf(prefix: Prefix): NumberRange {
  const { first, last } = rangeOf(prefix);
  return { first, last };
}

/** The parts of a range outside another. */
export function outsideOf({ first, last }: NumberRange, inner: NumberRange): NumberRange[] {
  if (last < inner.first || first > inner.last) return [{ first, last }];
  const before = { first, last: inner.first - 1n };
  const after = { first: inner.last + 1n, last };
  return [before, after].filter((range) => range.first <= range.last);
}

/** Splits nested ranges into parts without overlap. Each part lists the ranges that cover it. */
export function splitByCoverage<Range extends NumberRange>(
  ranges: readonly Range[],
): (NumberRange & { covering: readonly Range[] })[] {
  const edges = [...new Set(ranges.flatMap(({ first, last }) => [first, last + 1n]))].sort((a, b) => (a < b ? -1 : 1));
  const starts = ranges.toSorted((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0));
  const found: (NumberRange & { covering: readonly Range[] })[] = [];
  let open: Range[] = [];
  let next = 0;
  for (const [place, first] of edges.entries()) {
    const end = edges[place + 1];
    if (end === undefined) break;
    open = open.filter(({ last }) => last >= first);
    for (let range = starts[next]; range !== undefined && range.first <= first; range = starts[next]) {
      open.push(range);
      next += 1;
    }
    if (open.length > 0) found.push({ first, last: end - 1n, covering: [...open] });
  }
  return found;
}
