import { expect, test, vi } from 'vitest';
import { readInstant } from '../../../src/api/decode/field.ts';

test.each<[string | number, string | null]>([
  ['2030-01-31T12:00:00.000Z', '2030-01-31T12:00:00.000Z'],
  ['2030-01-31T12:00:00Z', '2030-01-31T12:00:00.000Z'],
  ['2030-01-31T14:00:00+02:00', '2030-01-31T12:00:00.000Z'],
  ['2030-01-31T12:00:00.123456Z', '2030-01-31T12:00:00.123Z'],
  ['2030-01-31 12:00:00', '2030-01-31T12:00:00.000Z'],
  ['2030-01-31 12:00:00.5', '2030-01-31T12:00:00.500Z'],
  ['2030-01-31T12:00:00,25', '2030-01-31T12:00:00.250Z'],
  [' 2030-01-31 12:00:00\n', '2030-01-31T12:00:00.000Z'],
  ['2030-01-31 12:00:00+00', '2030-01-31T12:00:00.000Z'],
  ['2030-01-31T12:00', '2030-01-31T12:00:00.000Z'],
  ['2030-01-31', '2030-01-31T00:00:00.000Z'],
  ['Thu, 31 Jan 2030 12:00:00 GMT', '2030-01-31T12:00:00.000Z'],
  [1_896_091_200, '2030-01-31T12:00:00.000Z'],
  [1_896_091_200_000, '2030-01-31T12:00:00.000Z'],
  // The last count that is of seconds, and the first that is of milliseconds; before 1970 alike.
  [99_999_999_999, '5138-11-16T09:46:39.000Z'],
  [100_000_000_000, '1973-03-03T09:46:40.000Z'],
  [-1_000_000_000_000, '1938-04-24T22:13:20.000Z'],
  [8.64e15, '+275760-09-13T00:00:00.000Z'],
  [8.64e15 + 1, null],
  ['tomorrow', null],
  ['', null],
  [1e300, null],
  [-1e300, null],
  [Number.POSITIVE_INFINITY, null],
  [Number.NaN, null],
])('%j is written as %j, whatever the time zone of this host', (given, written) => {
  for (const zone of ['UTC', 'Asia/Kolkata']) {
    vi.stubEnv('TZ', zone);
    expect([zone, readInstant(given)]).toEqual([zone, written]);
  }
  vi.unstubAllEnvs();
});
