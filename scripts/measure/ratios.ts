import { type Comparison, conclude } from './comparison.ts';

/** The ratio of one row of a subject; lower is better in each row. */
export interface Ratio {
  readonly subject: string;
  readonly what: string;
  readonly baseline: string;
  readonly unit: Comparison['unit'];
  readonly ratio: number;
  readonly median: number;
  readonly baselineMedian: number;
}

/** A ratio as the repository keeps it. */
export interface RecordedRatio extends Ratio {
  /** The commit that was measured. */
  readonly commit: string;
  readonly date: string;
  readonly machine: string;
}

/** A row, recorded and measured now; one of both may be missing. */
export interface RatioChange {
  readonly recorded: RecordedRatio | null;
  readonly now: Ratio | null;
  /** 0.1 where the ratio is a tenth above the recorded one; null where one of both is missing. */
  readonly change: number | null;
}

/** The percentage by which a ratio may exceed the recorded one. */
export const allowedLoss = 25;

/** The rows of a subject that have a ratio. */
export function ratiosOf(subject: string, comparisons: readonly Comparison[]): Ratio[] {
  return comparisons.map(conclude).flatMap(({ what, baseline, unit, ratio, median, baselineMedian }) => {
    return ratio === null || baselineMedian === null
      ? []
      : [{ subject, what, baseline, unit, ratio, median, baselineMedian }];
  });
}

/** Pairs what is recorded with what is measured: recorded rows in their order, then new ones. */
export function compareRatios(recorded: readonly RecordedRatio[], measured: readonly Ratio[]): RatioChange[] {
  const known = new Set(recorded.map(nameOf));
  const added = measured.filter((row) => !known.has(nameOf(row)));
  return [
    ...recorded.map((row) => {
      const now = measured.find((each) => nameOf(each) === nameOf(row)) ?? null;
      return { recorded: row, now, change: now === null ? null : now.ratio / row.ratio - 1 };
    }),
    ...added.map((now) => ({ recorded: null, now, change: null })),
  ];
}

/** True when the ratio grew by more than {@link allowedLoss}. */
export function isLost({ change }: RatioChange): boolean {
  // Not a number is a loss too.
  return change !== null && !(change * 100 <= allowedLoss);
}

/** The better of two measurements of each row. */
export function keepBetter(first: readonly Ratio[], second: readonly Ratio[]): Ratio[] {
  return first.map((row) => {
    const again = second.find((each) => nameOf(each) === nameOf(row));
    return again !== undefined && again.ratio < row.ratio ? again : row;
  });
}

/** The name of a row, which no other row has. */
export function nameOf({ subject, what, baseline }: Pick<Ratio, 'subject' | 'what' | 'baseline'>): string {
  return `${subject}: ${what}, against ${baseline}`;
}
