import { quantileOf } from './spread.ts';

/**
 * A measurement of cpn against a baseline that a user would have instead, in the same run; lower is
 * better in each unit.
 */
export interface Comparison {
  readonly what: string;
  readonly baseline: string;
  readonly unit:
    | 'ms'
    | 'ms of CPU'
    | 'MiB'
    | '% of a core'
    | 's'
    | 'bytes'
    | 'packets'
    | 'statements'
    | 'events'
    | 'requests'
    | 'sessions'
    | 'hosts'
    | 'pairs'
    | 'processes';
  readonly ours: readonly number[];
  /** Empty where there is no baseline: then the target is one of our own figure. */
  readonly theirs: readonly number[];
  readonly target: Target;
}

/**
 * The most that the ratio of the medians, or our own worst figure, may be; or that which `share` of
 * ours do not exceed.
 */
export type Target =
  | { readonly ratioAtMost: number; readonly text: string }
  | { readonly atMost: number; readonly text: string; readonly share?: number }
  | null;

/** A comparison in figures. */
export interface Result extends Omit<Comparison, 'ours' | 'theirs' | 'target'> {
  readonly runs: number;
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly baselineMedian: number | null;
  /** Our median by the baseline's; null without one. */
  readonly ratio: number | null;
  readonly target: string;
  /** Our figure for a target of a share, such as their p99; else null. */
  readonly atShare: number | null;
  /** Null where there is no target. */
  readonly met: boolean | null;
}

export function conclude({ ours, theirs, target, ...rest }: Comparison): Result {
  const median = medianOf(ours);
  const baselineMedian = theirs.length === 0 ? null : medianOf(theirs);
  const ratio = baselineMedian === null || baselineMedian === 0 ? null : median / baselineMedian;
  const own = target !== null && 'atMost' in target ? quantileOf(ours, target.share ?? 1) : null;
  return {
    ...rest,
    ...{ runs: ours.length, median, min: Math.min(...ours), max: Math.max(...ours), baselineMedian, ratio },
    atShare: target !== null && 'share' in target ? own : null,
    ...{ target: target?.text ?? '', met: isMet(target, ratio, own) },
  };
}

/**
 * The middle one of some figures, at least one; of an even number the mean of the two in the
 * middle.
 */
function medianOf(figures: readonly number[]): number {
  const sorted = figures.toSorted((a, b) => a - b);
  const [low, high] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  if (low === undefined || high === undefined) throw new Error('nothing was measured');
  return (low + high) / 2;
}

export const heading = [
  ...['what', 'baseline', 'unit', 'runs', 'median', 'min', 'max', 'baseline', 'ratio', 'target', 'met'],
];

/** The cells of a row, in the order of {@link heading}. */
export function cellsOf(result: Result): string[] {
  const { what, baseline, unit, runs, median, min, max, baselineMedian, ratio, target, atShare, met } = result;
  const figures = [median, min, max, baselineMedian, ratio].map((each) => (each === null ? '–' : formatFigure(each)));
  const verdict = met === null ? '' : met ? 'yes' : 'NO';
  const shown = atShare === null ? verdict : `${verdict} (${formatFigure(atShare)})`;
  return [what, baseline, unit, `${runs}`, ...figures, target, shown];
}

function isMet(target: Target, ratio: number | null, own: number | null): boolean | null {
  if (target === null) return null;
  return 'atMost' in target ? own !== null && own <= target.atMost : ratio !== null && ratio <= target.ratioAtMost;
}

/** Three significant digits. */
export function formatFigure(figure: number): string {
  if (figure >= 100) return figure.toFixed(0);
  return figure >= 10 ? figure.toFixed(1) : figure >= 1 ? figure.toFixed(2) : figure.toPrecision(2);
}
