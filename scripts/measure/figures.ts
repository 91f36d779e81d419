import { type Comparison, conclude, formatFigure } from './comparison.ts';

/**
 * A row of a subject as one figure: the ratio, or our own median where there is no baseline; lower
 * is better.
 */
export interface Figure {
  readonly subject: string;
  readonly what: string;
  /** Empty where there is none. */
  readonly baseline: string;
  readonly figure: number;
  /** What the figure was made from. */
  readonly measured: string;
}

/** A figure as the repository keeps it. */
export interface RecordedFigure extends Figure {
  /** The commit that was measured. */
  readonly commit: string;
  readonly date: string;
  readonly machine: string;
}

/** A row, recorded last and measured now; one of both may be missing. */
export interface FigureChange {
  readonly recorded: RecordedFigure | null;
  readonly now: Figure | null;
  /** 0.1 where the figure is a tenth above the recorded one; null where one of both is missing. */
  readonly change: number | null;
}

/** The percentage by which a figure may exceed the recorded one. */
export const allowedLoss = 25;

/** The rows of a subject. */
export function figuresOf(subject: string, comparisons: readonly Comparison[]): Figure[] {
  return comparisons.map(conclude).map((result) => {
    const { what, baseline, unit, ratio, median, baselineMedian, target, atShare } = result;
    const by = baselineMedian === null ? '' : ` by ${formatFigure(baselineMedian)}`;
    const share = atShare === null ? '' : `; ${target}: ${formatFigure(atShare)}`;
    const measured = `${formatFigure(median)}${by} ${unit}${share}`;
    return { subject, what, baseline, figure: Number((ratio ?? median).toPrecision(4)), measured };
  });
}

/**
 * Pairs what was recorded last with what is measured: recorded rows in their order, then new ones.
 */
export function compareFigures(history: readonly RecordedFigure[], measured: readonly Figure[]): FigureChange[] {
  const last = new Map(history.map((row) => [nameOf(row), row]));
  const added = measured.filter((row) => !last.has(nameOf(row)));
  return [
    ...[...last].map(([name, row]) => {
      const now = measured.find((each) => nameOf(each) === name) ?? null;
      return { recorded: row, now, change: now === null ? null : changeOf(row.figure, now.figure) };
    }),
    ...added.map((now) => ({ recorded: null, now, change: null })),
  ];
}

/** Some figures are 0, such as packets lost. */
function changeOf(before: number, now: number): number {
  return before === now ? 0 : now / before - 1;
}

/** True when the figure grew by more than {@link allowedLoss}. */
export function isLost({ change }: FigureChange): boolean {
  // Not a number is a loss too.
  return change !== null && !(change * 100 <= allowedLoss);
}

/** The better of two measurements of each row. */
export function keepBetter(first: readonly Figure[], second: readonly Figure[]): Figure[] {
  return first.map((row) => {
    const again = second.find((each) => nameOf(each) === nameOf(row));
    return again !== undefined && again.figure < row.figure ? again : row;
  });
}

/** The name of a row, which no other row has. */
export function nameOf({ subject, what, baseline }: Pick<Figure, 'subject' | 'what' | 'baseline'>): string {
  return baseline === '' ? `${subject}: ${what}` : `${subject}: ${what}, against ${baseline}`;
}
