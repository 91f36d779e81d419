import { expect, test } from 'vitest';
import { UnprobedPaths } from '../../../../src/app/run/paths/unprobed-paths.ts';

const minute = 60_000;

test('a peer that answered nothing gets no such path for 30 minutes, and one whose path was lost later gets the next', () => {
  let now = 0;
  const paths = new UnprobedPaths(() => now);
  expect(paths.accept(2)).toBe(true);
  now = 20_000;
  // Its NAT took another port.
  paths.end(2, 'lost');
  expect(paths.accept(2)).toBe(true);
  now += 2_000;
  paths.end(2, 'moved');
  expect(paths.accept(2)).toBe(true);
  now += 2_000;
  paths.end(2, 'lost');
  expect([paths.accept(2), paths.accept(3)]).toEqual([false, true]);
  now += 30 * minute;
  expect(paths.accept(2)).toBe(true);
  paths.end(2, 'lost');
  paths.clear(2);
  expect(paths.accept(2)).toBe(true);
});
