import { expect, it } from 'vitest';
import { compareRoutes, describeRouteChange } from '../../../src/core/routing/route-change.ts';
import { prefix } from '../samples.ts';

const change = (before: readonly string[], after: readonly string[]) =>
  compareRoutes(before.map(prefix), after.map(prefix));
const [a, b, c, d] = ['10.1.0.0/24', '10.2.0.0/24', '10.9.0.0/24', '10.10.0.0/24'];

it('the added and the removed routes are in the order of their addresses', () => {
  expect(change([d, a, c], [b, a])).toEqual({ added: [b], removed: [c, d] });
  expect(change([a], [d, c, a])).toEqual({ added: [c, d], removed: [] });
});

it.each<[before: readonly string[], after: readonly string[], text: string | null]>([
  [[a, b], [b, a], null],
  [[a], [b], `route ${b} was added, route ${a} was removed`],
  [[], [a, b], `routes ${a}, ${b} were added`],
  [[c, b, a], [], `routes ${a}, ${b}, ${c} were removed`],
  [[], [a, b, c, d], `routes ${a}, ${b}, ${c} and 1 more were added`],
])('from %j to %j is described', (before, after, text) => {
  expect(describeRouteChange(change(before, after))).toBe(text);
});
