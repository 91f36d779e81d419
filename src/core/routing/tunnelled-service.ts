import { type Address, covers, isDefaultRoute, type Prefix } from '../net/cidr.ts';

/**
 * Finds the accepted route through which alone a control plane, or the proxy to it, is reached; null for none. A host that loses such a
 * route cannot receive the map that restores it. Not counted is a route that a person lets through.
 *
 * @param addresses those of the control plane or of the proxy
 */
export function findServiceRoute(
  { routes, allowed }: { readonly routes: readonly Prefix[]; readonly allowed: readonly Prefix[] },
  addresses: readonly Address[],
): Prefix | null {
  const accepted = routes.filter((prefix) => !isDefaultRoute(prefix) && !allowed.includes(prefix));
  const found = addresses.map((address) => accepted.find((prefix) => covers(prefix, address)) ?? null);
  return found.includes(null) ? null : (found[0] ?? null);
}

/** What is wrong with such a control plane or proxy, as what follows its URL. */
export function describeServiceRoute(route: Prefix): string {
  return `is reached through the route ${route} of the network: without that route, this host cannot receive the map that restores it`;
}
