import { type Address, covers, isDefaultRoute, type Prefix } from '../net/cidr.ts';

/**
 * Returns the accepted route through which the control plane, or the proxy to it, is reached, if no
 * address of it is reached otherwise; else null. A host that loses such a route cannot receive the
 * map that restores it. Routes of `--allow-route` do not count.
 *
 * @param addresses the addresses of the control plane or of the proxy
 */
export function findServiceRoute(
  { routes, allowed }: { readonly routes: readonly Prefix[]; readonly allowed: readonly Prefix[] },
  addresses: readonly Address[],
): Prefix | null {
  const accepted = routes.filter((prefix) => !isDefaultRoute(prefix) && !allowed.includes(prefix));
  const found = addresses.map((address) => accepted.find((prefix) => covers(prefix, address)) ?? null);
  return found.includes(null) ? null : (found[0] ?? null);
}

/** Describes the problem as a phrase that follows the URL. */
export function describeServiceRoute(route: Prefix): string {
  return `is reached through the route ${route} of the network: without that route, this host cannot receive the map that restores it`;
}
