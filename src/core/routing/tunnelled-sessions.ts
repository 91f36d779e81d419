import type { Actual, SshClient } from '../host-state/actual.ts';
import { type Address, covers } from '../net/cidr.ts';
import { findNested, leadsInto } from './nested-prefixes.ts';

/**
 * Finds the SSH sessions that end with the tunnel: those to this host's address in the network, which goes with the interface, and
 * those whose client is behind the tunnel. A client that a `throw` route keeps outside is not.
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
