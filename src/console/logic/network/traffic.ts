import { toPoints } from './rates.ts';

/** A line of a chart, with its highest and mean rate. */
export interface ChartLine {
  readonly points: string;
  readonly most: number;
  readonly mean: number;
}

/** Lays out rates of equal intervals in a box. Lines of a chart share `most`, so they compare. */
export function layOutRates(rates: readonly number[], most: number, width: number, height: number): ChartLine {
  const sum = rates.reduce((total, rate) => total + rate, 0);
  return {
    // The appended value sets the height, and its point is removed.
    points: toPoints([...rates, most], width + width / Math.max(1, rates.length - 1), height)
      .split(' ')
      .slice(0, -1)
      .join(' '),
    most: Math.max(0, ...rates),
    mean: rates.length === 0 ? 0 : sum / rates.length,
  };
}

export const highestOf = (...lists: readonly (readonly number[])[]) => Math.max(1, ...lists.flat());

/** True if there is any traffic to show. */
export const hasTraffic = (...lists: readonly (readonly number[])[]) =>
  lists.some((rates) => rates.some((rate) => rate > 0));
