import type { Underlay } from '../host-state/actual.ts';
import {
  type Address,
  comparePrefixes,
  covers,
  hostPrefix,
  isDefaultRoute,
  lengthOf,
  type Prefix,
} from '../net/cidr.ts';
import { areResolversUnknown, type KeptOutside } from './kept-outside.ts';
import { leadsInto, type TunnelledResolver, type TunnelPrefixes } from './nested-prefixes.ts';

/** A local resolver may have any number of servers. */
const most = 64;

/**
 * Lists the resolvers that are reached through accepted routes. One stays in the list while its route is gone, as long as the host
 * names it: when the route is back, the resolver is reached through it again, and not kept outside.
 *
 * @param stubResolvers the servers that local stubs query
 */
export function findTunnelledResolvers(
  underlay: Underlay,
  stubResolvers: readonly Address[],
  { range, present, accepted, outside, tunnelled }: TunnelPrefixes,
): readonly TunnelledResolver[] {
  // Where the settings of a stub name all its servers, these are among the resolvers.
  const unstated = (underlay.stubs ?? []).filter(({ isStated }) => !isStated);
  const inUse = unstated.flatMap((stub) => stub.tunnelled ?? []);
  const all = [...underlay.resolvers, ...stubResolvers, ...inUse];
  const named = new Set(all.filter((address) => !outside.includes(address)));
  const known = areResolversUnknown(underlay) ? tunnelled : tunnelled.filter(({ address }) => named.has(address));
  const found = new Map(known.map((each) => [each.address, each]));
  const routes = [...present, ...accepted].filter((prefix) => !covers(range, prefix));
  for (const address of named) {
    if (!leadsInto(routes, address, underlay)) continue;
    const [route] = routes.filter((prefix) => covers(prefix, address)).toSorted((a, b) => lengthOf(b) - lengthOf(a));
    if (route !== undefined) found.set(address, { address, route });
  }
  // Those of before come first: the state would change with each query of a stub that has many servers.
  const kept = [...found.values()].filter(({ address }) => !outside.includes(address)).slice(0, most);
  return kept.toSorted((a, b) => comparePrefixes(hostPrefix(a.address), hostPrefix(b.address)));
}

/** The resolvers to which no route but the default one leads into the tunnel. */
export function findOuterResolvers(
  underlay: Underlay,
  routes: readonly Prefix[],
  keptOutside: readonly KeptOutside[],
): readonly Address[] {
  const taken = routes.filter((prefix) => !isDefaultRoute(prefix));
  const kept = new Set(keptOutside.map(({ address }) => address));
  return underlay.resolvers.filter((each) => kept.has(each) || !leadsInto(taken, each, underlay));
}
