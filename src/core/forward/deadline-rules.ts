import type { NetworkMap, Peer } from '../map/model.ts';
import type { Address } from '../net/cidr.ts';

/**
 * Rules that close at a deadline, also where no daemon runs any more: an element of a set keeps them open, and the kernel removes it.
 * Deadlines are in milliseconds since 1970, by the clock of the service.
 */
export type DeadlineRule =
  /** Refuses what a peer sends to this host or through it, or is sent through it, once the peer has expired. */
  | { readonly rule: 'refuse-expired'; readonly way: 'in' | 'out'; readonly peers: readonly ExpiringPeer[] }
  /** Refuses what this host would forward out of the tunnel, or into it, once its map is out of date. */
  | { readonly rule: 'refuse-outdated'; readonly way: 'in' | 'out'; readonly until: number };

export interface ExpiringPeer {
  readonly address: Address;
  readonly at: number;
}

const ways = ['in', 'out'] as const;

/** The rules for peers that expire; none where no peer does. */
export function expiryRules({ peers }: NetworkMap, self: Peer): readonly DeadlineRule[] {
  const expiring = peers.flatMap(({ id, address, expiresAt }) =>
    id === self.id || expiresAt === undefined ? [] : { address, at: expiresAt },
  );
  return expiring.length === 0 ? [] : ways.map((way) => ({ rule: 'refuse-expired', way, peers: expiring }));
}

/** The rules of a host whose map is valid until an instant; none where it is valid for good. */
export function ageRules(until: number | null): readonly DeadlineRule[] {
  return until === null ? [] : ways.map((way) => ({ rule: 'refuse-outdated', way, until }));
}

/** Those for packets as they arrive, which every host has, and those for packets that are forwarded. */
export function splitDeadlines(rules: readonly DeadlineRule[]) {
  const isEntering = ({ rule, way }: DeadlineRule) => rule === 'refuse-expired' && way === 'in';
  return { entering: rules.filter(isEntering), passing: rules.filter((rule) => !isEntering(rule)) };
}
