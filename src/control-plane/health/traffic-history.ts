import type { PeerPath } from '../../contract/health.ts';
import { type TrafficSeries, trafficIntervalSeconds, trafficIntervals } from '../../contract/traffic.ts';

/** Bytes that a host received and sent per interval. The last entries are for `last`. */
export interface TrafficHistory {
  /** Counts intervals since 1970. */
  readonly last: number;
  readonly received: readonly number[];
  readonly sent: readonly number[];
}

/** Bytes per second. */
export interface TrafficRates {
  readonly received: number;
  readonly sent: number;
}

const intervalMs = trafficIntervalSeconds * 1000;
/** An idle host reports every three minutes. After twice that time, its rates are unknown. */
const longestHoldMs = 6 * 60_000;
/** Limits the rates that a host may report. No interface reaches ten terabits per second. */
const mostRate = 1.25e12;

export function sumRates(paths: readonly Pick<PeerPath, 'rx_rate' | 'tx_rate'>[]): TrafficRates {
  const sum = (rates: readonly (number | undefined)[]) =>
    Math.min(
      mostRate,
      rates.reduce<number>((total, rate = 0) => total + rate, 0),
    );
  return { received: sum(paths.map(({ rx_rate }) => rx_rate)), sent: sum(paths.map(({ tx_rate }) => tx_rate)) };
}

/**
 * Adds the time between two reports (`from` to `to`, milliseconds) at the rates of the earlier one:
 * a host reports a notable change of its rates. Null if there is nothing to add.
 */
export function addTraffic(
  before: TrafficHistory | null,
  { received, sent }: TrafficRates,
  from: number,
  to: number,
): TrafficHistory | null {
  const end = Math.min(to, from + longestHoldMs);
  if (end <= from || received + sent === 0) return null;
  const first = Math.floor(from / intervalMs);
  const last = Math.floor((end - 1) / intervalMs);
  // The clock was ahead.
  const base = before !== null && before.last > last + 1 ? null : before;
  const latest = Math.max(last, base?.last ?? last);
  const add = (values: readonly number[] | undefined, rate: number) =>
    shift(values ?? [], base?.last ?? latest, latest).map((value, at) => {
      const interval = latest - trafficIntervals + 1 + at;
      if (interval < first || interval > last) return value;
      const overlap = Math.min(end, (interval + 1) * intervalMs) - Math.max(from, interval * intervalMs);
      return value + Math.round((rate * overlap) / 1000);
    });
  return { last: latest, received: add(base?.received, received), sent: add(base?.sent, sent) };
}

/** Extends or cuts a series that ends at `last` to all intervals up to `latest`. */
function shift(values: readonly number[], last: number, latest: number): readonly number[] {
  const empty = Math.max(0, Math.min(trafficIntervals, latest - last));
  const known = values.slice(-(trafficIntervals - empty));
  const kept = empty === trafficIntervals ? [] : known;
  const before = Array<number>(trafficIntervals - kept.length - empty).fill(0);
  return [...before, ...kept, ...Array<number>(empty).fill(0)];
}

/** Bytes per second in each of the last intervals, up to the interval of `now` in milliseconds. */
export function toSeries(history: TrafficHistory | null, now: number): TrafficSeries {
  const latest = Math.floor(now / intervalMs);
  const elapsed = Math.max(60, (now - latest * intervalMs) / 1000);
  const toRates = (values: readonly number[] | undefined) => {
    if (history === null || values === undefined || history.last > latest)
      return Array<number>(trafficIntervals).fill(0);
    return shift(values, history.last, latest).map((bytes, at) =>
      Math.round(bytes / (at === trafficIntervals - 1 ? elapsed : trafficIntervalSeconds)),
    );
  };
  return { received: toRates(history?.received), sent: toRates(history?.sent) };
}

/** The end of an instant's interval, ISO 8601. */
export const intervalEnd = (now: number) => new Date((Math.floor(now / intervalMs) + 1) * intervalMs).toISOString();

/** The stored text: the interval, and both lists without the leading zeros. */
export function formatTraffic({ last, received, sent }: TrafficHistory): string {
  const start = Math.min(
    ...[received, sent].map((values) => {
      const at = values.findIndex((value) => value > 0);
      return at === -1 ? values.length : at;
    }),
  );
  return JSON.stringify([last, received.slice(start), sent.slice(start)]);
}

export function parseTraffic(text: string): TrafficHistory {
  const [last, received, sent] = JSON.parse(text) as [number, number[], number[]];
  return { last, received, sent };
}
