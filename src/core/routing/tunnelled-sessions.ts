import type { Actual, SshClient } from '../host-state/actual.ts';
import { type Address, covers } from '../net/cidr.ts';
import { findNested, leadsInto } from './nested-prefixes.ts';

/**
 * Finds the SSH sessions that end with the tunnel: sessions to the host's address in the network,
 * which goes with the interface, and sessions whose client is behind the tunnel. Clients that a
 * `throw` route keeps outside do not count.
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
