import { type Prefix, parsePrefix } from '../../core/net/cidr.ts';
import { compareRoutes, describeRouteChange } from '../../core/routing/route-change.ts';
import { readFields } from '../domain/field-rules.ts';
import { Conflict } from '../errors.ts';

/** Refuses a change that was meant for other routes than there are. `texts` is undefined where the caller names none. */
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
