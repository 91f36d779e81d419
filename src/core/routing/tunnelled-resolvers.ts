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

/** Limits the list, because a local resolver may have any number of servers. */
const most = 64;

/**
 * Lists the resolvers reached through accepted routes. A resolver stays listed while its route is
 * missing and the host still names it, and so is not kept outside when the route returns.
 * `stubResolvers` are the servers of local stubs.
 */
export function findTunnelledResolvers(
  underlay: Underlay,
  stubResolvers: readonly Address[],
  { range, present, accepted, outside, tunnelled }: TunnelPrefixes,
): readonly TunnelledResolver[] {
  // If the settings of a stub name all its servers, `resolvers` has them already.
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
  // Earlier entries come first. Otherwise the state would change with each query of a stub that has
  // many servers.
  const kept = [...found.values()].filter(({ address }) => !outside.includes(address)).slice(0, most);
  return kept.toSorted((a, b) => comparePrefixes(hostPrefix(a.address), hostPrefix(b.address)));
}

/** Returns the resolvers to which no route except a default route leads into the tunnel. */
export function findOuterResolvers(
  underlay: Underlay,
  routes: readonly Prefix[],
  keptOutside: readonly KeptOutside[],
): readonly Address[] {
  const taken = routes.filter((prefix) => !isDefaultRoute(prefix));
  const kept = new Set(keptOutside.map(({ address }) => address));
  return underlay.resolvers.filter((each) => kept.has(each) || !leadsInto(taken, each, underlay));
}
