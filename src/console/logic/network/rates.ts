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

/** The hosts with the most traffic now. */
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
