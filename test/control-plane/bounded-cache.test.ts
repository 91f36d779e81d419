import { expect, test } from 'vitest';
import { createBoundedCache } from '../../src/control-plane/bounded-cache.ts';

test('a bounded cache keeps the entries that were used last', () => {
  const cache = createBoundedCache<string, number>(2);
  cache.set('a', 1).set('b', 2);
  cache.get('a');
  cache.set('c', 3);
  expect([cache.get('a'), cache.get('b'), cache.get('c'), cache.size]).toEqual([1, undefined, 3, 2]);
});

test('an empty cache takes no room in advance', () => {
  // No array has so many places.
  const cache = createBoundedCache<number, number>(2 ** 40);
  expect(cache.set(1, 2).get(1)).toBe(2);
});
