import type { SshClient, Underlay } from '../host-state/actual.ts';
import { type Address, covers, familyOf, hostPrefix, type Prefix } from '../net/cidr.ts';
import { leadsInto } from '../routing/nested-prefixes.ts';
import { linkFinder } from './links-toward.ts';

/** An SSH session that the rules for arriving packets would end. It is kept until it ends. */
export interface KeptSession {
  readonly address: Address;
  readonly local: Address;
}

export interface SessionInputs {
  /** This host's address in the network, and its served prefixes without a default route. */
  readonly at: Address;
  readonly served: readonly Prefix[];
  /** The prefixes that lead into the tunnel. */
  readonly tunnelled: readonly Prefix[];
  /** The interfaces, other than the tunnel's, that may reach the tunnel address. */
  readonly admitted: readonly string[];
  readonly underlay: Underlay;
}

/**
 * Finds the sessions that would end: to the tunnel address from another network, and through the
 * tunnel to another address of this host. Uncertain paths count: an extra exception does no harm.
 */
export function findKeptSessions(sessions: readonly SshClient[], inputs: SessionInputs): KeptSession[] {
  if (sessions.length === 0) return [];
  const { at, served, tunnelled, admitted, underlay } = inputs;
  const linksToward = linkFinder(underlay);
  const isAdmitted = (address: Address) => {
    const links = linksToward(hostPrefix(address));
    return links.length > 0 && links.every((link) => admitted.includes(link));
  };
  return sessions.flatMap(({ address, local }): KeptSession[] => {
    if (local === null || familyOf(local) !== familyOf(address)) return [];
    // A session of this host with itself goes through no network.
    if (address === at || underlay.addresses.includes(address)) return [];
    const isInside = leadsInto(tunnelled, address, underlay);
    const ends =
      local === at ? !isInside && !isAdmitted(address) : isInside && !served.some((prefix) => covers(prefix, local));
    return ends ? [{ address, local }] : [];
  });
}
