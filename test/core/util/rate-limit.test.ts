import { expect, it } from 'vitest';
import { pauseFor } from '../../../src/core/util/rate-limit.ts';

it('lets so many pass within a time, and puts the next one off until the oldest of them is past', () => {
  const pace = { most: 3, withinMs: 1000 };
  expect(pauseFor([], 0, pace)).toBe(0);
  expect(pauseFor([0, 10], 20, pace)).toBe(0);
  expect(pauseFor([0, 10, 20], 30, pace)).toBe(970);
  expect(pauseFor([0, 10, 20], 1500, pace)).toBe(0);
  expect(pauseFor([0, 10, 20, 500], 600, pace)).toBe(410);
});
