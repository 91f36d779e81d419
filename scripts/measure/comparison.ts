import { quantileOf } from './spread.ts';

/** What was measured, beside what a user would have instead, in the same run on the same machine; lower is better in each unit. */
export interface Comparison {
  readonly what: string;
  readonly beside: string;
  readonly unit: 'ms' | 'ms of CPU' | 'MiB' | '% of a core' | 's' | 'bytes' | 'packets' | 'statements';
  readonly ours: readonly number[];
  /** Empty where there is nothing to measure beside it: then the target is one of our own figure. */
  readonly theirs: readonly number[];
  readonly target: Target;
}

/** The most that the ratio of the medians, or our own worst figure, may be; or that which `share` of ours do not exceed. */
export type Target =
  | { readonly ratioAtMost: number; readonly says: string }
  | { readonly atMost: number; readonly says: string; readonly share?: number }
  | null;

/** A comparison in figures. */
export interface Result extends Omit<Comparison, 'ours' | 'theirs' | 'target'> {
  readonly runs: number;
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly besideMedian: number | null;
  /** Our median by theirs; null where theirs is nothing. */
  readonly ratio: number | null;
  readonly target: string;
  /** What of ours is held against a target that speaks of a share of them, such as their p99; else null. */
  readonly atShare: number | null;
  /** Null where there is no target. */
  readonly met: boolean | null;
}

export function conclude({ ours, theirs, target, ...rest }: Comparison): Result {
  const median = medianOf(ours);
  const besideMedian = theirs.length === 0 ? null : medianOf(theirs);
  const ratio = besideMedian === null || besideMedian === 0 ? null : median / besideMedian;
  const own = target !== null && 'atMost' in target ? quantileOf(ours, target.share ?? 1) : null;
  return {
    ...rest,
    ...{ runs: ours.length, median, min: Math.min(...ours), max: Math.max(...ours), besideMedian, ratio },
    atShare: target !== null && 'share' in target ? own : null,
    ...{ target: target?.says ?? '', met: isMet(target, ratio, own) },
  };
}

/** The middle one of some figures, at least one; of an even number the mean of the two in the middle. */
function medianOf(figures: readonly number[]): number {
  const sorted = figures.toSorted((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  if (low === undefined || high === undefined) throw new Error('nothing was measured');
  return (low + high) / 2;
}

export const heading = [
  ...['what', 'beside', 'unit', 'runs', 'median', 'min', 'max', 'beside', 'ratio', 'target', 'met'],
];

/** The cells of a row, in the order of {@link heading}. */
export function cellsOf(result: Result): string[] {
  const { what, beside, unit, runs, median, min, max, besideMedian, ratio, target, atShare, met } = result;
  const figures = [median, min, max, besideMedian, ratio].map((each) => (each === null ? '–' : formatFigure(each)));
  const verdict = met === null ? '' : met ? 'yes' : 'NO';
  const shown = atShare === null ? verdict : `${verdict} (${formatFigure(atShare)})`;
  return [what, beside, unit, `${runs}`, ...figures, target, shown];
}

function isMet(target: Target, ratio: number | null, own: number | null): boolean | null {
  if (target === null) return null;
  return 'atMost' in target ? own !== null && own <= target.atMost : ratio !== null && ratio <= target.ratioAtMost;
}

/** Three digits that count. */
export function formatFigure(figure: number): string {
  if (figure >= 100) return figure.toFixed(0);
  return figure >= 10 ? figure.toFixed(1) : figure >= 1 ? figure.toFixed(2) : figure.toPrecision(2);
}
