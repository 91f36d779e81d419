import type { Prefix } from '../net/cidr.ts';
import { isPlainLinkName } from '../net/link-name.ts';

/** Interfaces by which connections of served prefixes arrive, and these prefixes. */
export interface Entrance {
  readonly by: readonly string[];
  readonly from: readonly Prefix[];
}

/**
 * Groups prefixes by the interfaces that lead to them. Prefixes without such an interface are left
 * out.
 */
export function findEntrances(
  prefixes: readonly Prefix[],
  linksToward: (route: Prefix) => readonly string[],
): Entrance[] {
  const entrances = prefixes.map((prefix) => ({ prefix, by: linksToward(prefix).filter(isPlainLinkName).toSorted() }));
  const groups = Map.groupBy(
    entrances.filter(({ by }) => by.length > 0),
    ({ by }) => by.join(),
  );
  return [...groups.values()].map((group) => ({ by: group[0]?.by ?? [], from: group.map(({ prefix }) => prefix) }));
}
