import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { backoffDelay, pauseFor, readRetryAfter } from '../../../src/core/util/backoff.ts';

const backoff = { baseMs: 500, capMs: 8_000 };
const now = Date.parse('2026-03-01T12:00:00Z');

describe('backoffDelay', () => {
  test('its ceiling doubles with each attempt up to the cap', () => {
    const almostOne = 1 - Number.EPSILON;
    const ceilings = [1, 2, 3, 4, 5, 6].map((attempt) => Math.round(backoffDelay(attempt, backoff, almostOne) / 500));
    expect(ceilings).toEqual([1, 2, 4, 8, 16, 16]);
  });

  test('takes any point below the ceiling, by the random number given', () => {
    expect([0, 0.25, 0.5].map((random) => backoffDelay(3, backoff, random))).toEqual([0, 500, 1000]);
  });

  test('never is negative, above the cap or above its doubled ceiling, however long the outage', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 2 ** 31 }),
        fc.integer({ min: 0, max: 100_000 }),
        fc.integer({ min: 0, max: 1_000_000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (attempt, baseMs, capMs, random) => {
          const delay = backoffDelay(attempt, { baseMs, capMs }, random);
          return delay >= 0 && delay <= capMs && (attempt > 20 || delay <= baseMs * 2 ** Math.max(attempt - 1, 0));
        },
      ),
    );
  });
});

describe('readRetryAfter', () => {
  test.each([
    ['0', 0],
    ['7', 7_000],
    [' 7 ', 7_000],
    ['61', 60_000],
    ['9'.repeat(400), 60_000],
    ['Sun, 01 Mar 2026 12:00:09 GMT', 9_000],
    ['Sun, 01 Mar 2026 11:00:00 GMT', 0],
    ['Sun, 01 Mar 2036 12:00:00 GMT', 60_000],
  ])('%j is %d ms', (header, expected) => {
    expect(readRetryAfter(header, now, 60_000)).toBe(expected);
  });

  test.each([
    [null],
    [''],
    ['-5'],
    ['1.5'],
    ['1e3'],
    ['soon'],
    ['2026-03-01T12:00:09Z'],
    ['Sun, 41 Mar 2026 12:00:00 GMT'],
  ])('%j is ignored', (header) => {
    expect(readRetryAfter(header, now, 60_000)).toBeNull();
  });

  test('never is negative or above the maximum', () => {
    const header = fc.oneof(
      fc.string(),
      fc.bigInt({ min: 0n }).map(String),
      fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
    );
    fc.assert(
      fc.property(header, fc.integer(), fc.nat(), (text, from, max) => {
        const delay = readRetryAfter(text, from, max);
        return delay === null || (delay >= 0 && delay <= max);
      }),
    );
  });
});

it('lets so many pass within a time, and puts the next one off until the oldest of them is past', () => {
  const pace = { most: 3, withinMs: 1000 };
  expect(pauseFor([], 0, pace)).toBe(0);
  expect(pauseFor([0, 10], 20, pace)).toBe(0);
  expect(pauseFor([0, 10, 20], 30, pace)).toBe(970);
  expect(pauseFor([0, 10, 20], 1500, pace)).toBe(0);
  expect(pauseFor([0, 10, 20, 500], 600, pace)).toBe(410);
});

test('an endless outage without a base delay has no delay, and no NaN', () => {
  expect(backoffDelay(5000, { baseMs: 0, capMs: 8_000 }, 0)).toBe(0);
  expect(backoffDelay(5000, { baseMs: 0, capMs: 8_000 }, 0.5)).toBe(0);
});
