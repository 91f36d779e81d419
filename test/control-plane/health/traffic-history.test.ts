import { expect, test } from 'vitest';
import { trafficIntervals } from '../../../src/contract/traffic.ts';
import {
  addTraffic,
  formatTraffic,
  parseTraffic,
  sumRates,
  type TrafficHistory,
  toSeries,
} from '../../../src/control-plane/health/traffic-history.ts';

const minute = 60_000;
const interval = 30 * minute;
/** The beginning of an interval. */
const start = 1_000_000 * interval;

/** A host that reports once a minute, at the same rates. */
function reportFor(minutes: number, rate: number, from = start, before: TrafficHistory | null = null) {
  let history = before;
  for (let at = 0; at < minutes; at++) {
    history =
      addTraffic(history, { received: rate, sent: rate / 2 }, from + at * minute, from + (at + 1) * minute) ?? history;
  }
  return history;
}

test('a rate holds until the next report, and its intervals have the mean', () => {
  const history = reportFor(60, 1000);
  const { received, sent } = toSeries(history, start + 2 * interval - 1);
  expect([received.slice(-3), sent.slice(-3)]).toEqual([
    [0, 1000, 1000],
    [0, 500, 500],
  ]);
  expect(received).toHaveLength(trafficIntervals);
  // Half of the interval is over.
  expect(toSeries(reportFor(15, 1000), start + 15 * minute).received.at(-1)).toBe(1000);
});

test('the first minute of an interval is a minute: what comes at its beginning is no burst', () => {
  const history = addTraffic(null, { received: 6000, sent: 600 }, start, start + 10_000);
  expect([10_000, 59_000, 120_000].map((ms) => toSeries(history, start + ms).received.at(-1))).toEqual([
    1000, 1000, 500,
  ]);
  expect(toSeries(history, start + 10_000).sent.at(-1)).toBe(100);
});

test('an interval between two reports gets its part, and a silence is no traffic', () => {
  const across = addTraffic(null, { received: 600, sent: 0 }, start - minute, start + 2 * minute);
  expect(across?.received.slice(-2)).toEqual([600 * 60, 600 * 120]);
  // Six minutes count: a host that is silent for longer does not report.
  const silent = addTraffic(null, { received: 600, sent: 0 }, start, start + 5 * interval);
  expect(silent?.received.filter((bytes) => bytes > 0)).toEqual([600 * 360]);
});

test('a day is kept, whatever the clock does', () => {
  const old = reportFor(30, 1000);
  const day = trafficIntervals * interval;
  expect(toSeries(old, start + day - 1).received[0]).toBe(1000);
  expect(toSeries(old, start + day).received.every((rate) => rate === 0)).toBe(true);
  const later = reportFor(30, 2000, start + 3 * day, old);
  expect(later?.received.filter((bytes) => bytes > 0)).toEqual([2000 * 1800]);
  expect(later?.received).toHaveLength(trafficIntervals);
  // A clock that was a week ahead does not hide what comes now.
  const ahead = reportFor(30, 1000, start + 7 * day);
  expect(toSeries(reportFor(30, 2000, start, ahead), start + interval - 1).received.at(-1)).toBe(2000);
  expect(addTraffic(old, { received: 1, sent: 1 }, start + minute, start)).toBe(null);
});

test('the stored text is small, and is the same history', () => {
  const quiet = reportFor(30, 1000) as TrafficHistory;
  expect(formatTraffic(quiet)).toBe(`[${quiet.last},[1800000],[900000]]`);
  expect(toSeries(parseTraffic(formatTraffic(quiet)), start)).toEqual(toSeries(quiet, start));
  // A day at 100 Mbit/s.
  const busy = reportFor(24 * 60, 12_500_000) as TrafficHistory;
  expect(formatTraffic(busy).length).toBeLessThan(1300);
  expect(toSeries(parseTraffic(formatTraffic(busy)), start + 48 * interval - 1)).toEqual(
    toSeries(busy, start + 48 * interval - 1),
  );
});

test('a host that reports impossible rates stays within what a number holds', () => {
  const rates = sumRates([{ rx_rate: Number.MAX_SAFE_INTEGER, tx_rate: 5 }, { rx_rate: Number.MAX_SAFE_INTEGER }]);
  expect(rates).toEqual({ received: 1.25e12, sent: 5 });
  const history = reportFor(30, 1.25e12) as TrafficHistory;
  expect(history.received.every(Number.isSafeInteger)).toBe(true);
});
