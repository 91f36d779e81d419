import type { Health, PeerHealth } from '../../../contract/health.ts';

/** The rates of a host in one report, in bytes per second. */
export interface Sample {
  readonly reportedAt: string | null;
  readonly received: number;
  readonly sent: number;
}

/** The samples of hosts since the page was loaded, oldest first. */
export type RateSamples = ReadonlyMap<number, readonly Sample[]>;

const mostSamples = 60;

/** Adds newer reports. An offline host has no rates. */
export function addSamples(before: RateSamples, { peers }: Health): RateSamples {
  return new Map(
    peers.flatMap((peer): [number, readonly Sample[]][] => {
      if (peer.state === 'offline') return [];
      const samples = before.get(peer.id) ?? [];
      const sample = toSample(peer);
      if (sample === null) return samples.length === 0 ? [] : [[peer.id, samples]];
      if (isSame(samples.at(-1), sample)) return [[peer.id, samples]];
      return [[peer.id, [...samples, sample].slice(-mostSamples)]];
    }),
  );
}

/** Null for a host that reports no rates. */
function toSample({ reported_at, paths }: PeerHealth): Sample | null {
  const measured = paths.filter(({ rx_rate, tx_rate }) => rx_rate !== undefined || tx_rate !== undefined);
  if (measured.length === 0) return null;
  return {
    reportedAt: reported_at,
    received: measured.reduce((sum, { rx_rate = 0 }) => sum + rx_rate, 0),
    sent: measured.reduce((sum, { tx_rate = 0 }) => sum + tx_rate, 0),
  };
}

/** Without a report time, samples with different rates differ. */
function isSame(last: Sample | undefined, next: Sample): boolean {
  if (last === undefined || last.reportedAt !== next.reportedAt) return false;
  return next.reportedAt !== null || (last.received === next.received && last.sent === next.sent);
}

export function findBusiest(rates: RateSamples, most: number): readonly (readonly [number, readonly Sample[]])[] {
  const now = (samples: readonly Sample[]) => (samples.at(-1)?.received ?? 0) + (samples.at(-1)?.sent ?? 0);
  return [...rates].toSorted(([, one], [, other]) => now(other) - now(one)).slice(0, most);
}

/** The points of a line in a box, with the highest value at the top. */
export function toPoints(values: readonly number[], width: number, height: number): string {
  const most = Math.max(1, ...values);
  const step = values.length > 1 ? width / (values.length - 1) : 0;
  const drawn = values.length === 1 ? [...values, ...values] : values;
  return drawn
    .map(
      (value, at) =>
        `${round(values.length === 1 ? at * width : at * step)},${round(height - (value / most) * height)}`,
    )
    .join(' ');
}

const round = (value: number) => Math.round(value * 10) / 10;

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

export const hasTraffic = (...lists: readonly (readonly number[])[]) =>
  lists.some((rates) => rates.some((rate) => rate > 0));
