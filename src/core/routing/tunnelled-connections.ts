import type { Actual, SshClient } from '../host-state/actual.ts';
import { type Address, covers, isDefaultRoute, type Prefix } from '../net/cidr.ts';
import { findNested, leadsInto } from './nested-prefixes.ts';

/**
 * Returns the accepted route without which the control plane, or its proxy, at `addresses` is not
 * reached; else null. A host that loses it cannot receive the map that restores it. Routes of
 * `--allow-route` do not count.
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

/**
 * Finds the SSH sessions that end with the tunnel: to the host's address in the network, or of
 * clients behind the tunnel. Clients that a `throw` route keeps outside do not count.
 */
export function findTunnelledSessions(
  sessions: readonly SshClient[],
  own: Address,
  actual: Pick<Actual, 'link' | 'routes' | 'rules' | 'underlay' | 'throwRoutes'>,
): SshClient[] {
  if (actual.link === null) return [];
  const tunnelled = findNested(actual, []);
  const isOutside = (address: Address) => (actual.throwRoutes ?? []).some(({ prefix }) => covers(prefix, address));
  const isBehind = (address: Address) => leadsInto(tunnelled, address, actual.underlay) && !isOutside(address);
  return sessions.filter(({ address, local }) => local === own || isBehind(address));
}
