import type { Prefix } from '../../net/cidr.ts';
import { nameTable } from './describe-drop.ts';
import type { ForwardDrop } from './find-drops.ts';
import type { ForwardPath } from './path.ts';

/** Returns the routes to or from which certainly no packet passes this host, with the reason. */
export function findDroppedRoutes(
  paths: readonly ForwardPath[],
  drops: readonly ForwardDrop[],
): ReadonlyMap<Prefix, string> {
  const dropped = new Map<Prefix, string>();
  const whole = drops.filter(({ some, letsPublished = false }) => some.length === 0 && !letsPublished);
  const find = (path: ForwardPath) => whole.find((drop) => drop.paths.some((each) => isSame(each, path)));
  const [out, back] = [byRoute(paths, 'new', 'to'), byRoute(paths, 'established', 'from')];
  for (const [route, pathsBetween] of [...out, ...back]) {
    const [first, ...others] = pathsBetween.map(find);
    if (first === undefined || others.includes(undefined)) continue;
    dropped.set(route, `${nameTable(first)} drops what this host forwards there: ${first.reason}`);
  }
  return dropped;
}

function byRoute(paths: readonly ForwardPath[], state: ForwardPath['state'], end: 'from' | 'to') {
  const pathsBetween = paths.filter((path) => path.state === state && path.from !== path.to);
  return Map.groupBy(pathsBetween, (path) => path[end]);
}

const isSame = (a: ForwardPath, b: ForwardPath) =>
  a.iif === b.iif && a.oif === b.oif && a.from === b.from && a.to === b.to && a.state === b.state;
