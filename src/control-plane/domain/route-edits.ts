import type { ChangeNetwork } from '../../contract/network.ts';
import { InvalidValue } from '../../core/errors/index.ts';
import { type Prefix, parsePrefix } from '../../core/net/cidr.ts';
import { compareRoutes, describeRouteChange } from '../../core/routing/route-change.ts';
import { Conflict } from '../errors.ts';
import { type ReadField, readFields } from './field-rules.ts';
import { parseRoutes } from './network-rules.ts';

const most = 50;

/** The routes after a change: `routes` if given, else the current ones with the edits. */
export function readRoutes(
  read: ReadField,
  network: { readonly range: Prefix; readonly routes: readonly Prefix[] },
  { routes, add_routes, remove_routes }: ChangeNetwork,
  allowPublic: boolean,
): Prefix[] | undefined {
  const added = read(() => {
    if (add_routes === undefined) return [];
    refuseBoth(routes, 'add_routes', add_routes);
    return parseRoutes(add_routes, network.range, allowPublic, 'add_routes');
  });
  const removed = read(() => {
    if (remove_routes === undefined) return [];
    refuseBoth(routes, 'remove_routes', remove_routes);
    return parseRemoved(remove_routes, network.routes, added ?? []);
  });
  if (routes !== undefined) return read(() => parseRoutes(routes, network.range, allowPublic));
  if (added === undefined || removed === undefined) return undefined;
  const kept = network.routes.filter((route) => !removed.includes(route));
  const edited = [...kept, ...added.filter((route) => !kept.includes(route))];
  return read(() => {
    if (edited.length <= Math.max(most, network.routes.length)) return edited;
    throw new InvalidValue(
      'add_routes',
      add_routes,
      `would make ${edited.length} routes; a network has at most ${most}`,
    );
  });
}

function refuseBoth(routes: ChangeNetwork['routes'], field: string, value: readonly string[]): void {
  if (routes !== undefined) throw new InvalidValue(field, value, 'excludes routes, which replaces all routes');
}

/** Refuses the removal of an unknown route: after a slip, the intended route would stay. */
function parseRemoved(texts: readonly string[], routes: readonly Prefix[], added: readonly Prefix[]): Prefix[] {
  const strange = texts.find((text) => !routes.some((route) => route === text));
  if (strange !== undefined) throw new InvalidValue('remove_routes', strange, 'is not a route of the network');
  const both = added.find((route) => texts.includes(route));
  if (both !== undefined) throw new InvalidValue('remove_routes', both, 'is in add_routes too');
  return routes.filter((route) => texts.includes(route));
}

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
  if (changes !== null) throw new Conflict(`the routes of the ${of} have changed: ${changes}`);
}
