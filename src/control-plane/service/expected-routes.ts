import { type Prefix, parsePrefix } from '../../core/net/cidr.ts';
import { compareRoutes, describeRouteChange } from '../../core/routing/route-change.ts';
import { readFields } from '../domain/field-rules.ts';
import { Conflict } from '../errors.ts';

/** Refuses a change if the routes are not the expected ones. Undefined `texts` skip the check. */
export function checkExpectedRoutes(
  of: 'network' | 'peer',
  routes: readonly Prefix[],
  texts?: readonly string[],
): void {
  if (texts === undefined) return;
  const { expected } = readFields((read) => ({
    expected: read(() => texts.map((text) => parsePrefix(text, 'expected_routes'))),
  }));
  const changes = describeRouteChange(compareRoutes(expected, routes));
  if (changes !== null) throw new Conflict(`the routes of the ${of} are others by now: ${changes} since`);
}
