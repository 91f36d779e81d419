import type { PeerPath } from '../../contract/health.ts';
import { type TrafficSeries, trafficIntervalSeconds, trafficIntervals } from '../../contract/traffic.ts';

/** What a host received and sent in each interval, in bytes; the last entries are those of the interval `last`. */
export interface TrafficHistory {
  /** Counts intervals since 1970. */
  readonly last: number;
  readonly received: readonly number[];
  readonly sent: readonly number[];
}

/** Bytes a second. */
export interface TrafficRates {
  readonly received: number;
  readonly sent: number;
}

const intervalMs = trafficIntervalSeconds * 1000;
/** An idle host reports every three minutes: after twice that long its rates are not known. */
const longestHoldMs = 6 * 60_000;
/** A host may report any number. Ten terabits a second fit into no interface. */
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
 * Adds the time between two reports, in which the rates of the earlier one held: a host reports a rate when it changes notably. Null
 * where there is nothing to add.
 *
 * @param from like `to` in milliseconds
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
  // By a clock that was ahead.
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

/** All intervals up to `latest`, of values whose last one is that of `last`. */
function shift(values: readonly number[], last: number, latest: number): readonly number[] {
  const empty = Math.max(0, Math.min(trafficIntervals, latest - last));
  const known = values.slice(-(trafficIntervals - empty));
  const kept = empty === trafficIntervals ? [] : known;
  const before = Array<number>(trafficIntervals - kept.length - empty).fill(0);
  return [...before, ...kept, ...Array<number>(empty).fill(0)];
}

/** Bytes a second in each of the last intervals, up to the one of `now` in milliseconds. */
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

/** The end of the interval of an instant, ISO 8601. */
export const intervalEnd = (now: number) => new Date((Math.floor(now / intervalMs) + 1) * intervalMs).toISOString();

/** The text of the database: the interval, and both lists without the zeros before the first traffic. */
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
