import type { NetworkMap, Peer } from '../map/model.ts';
import { type Address, familyOf } from '../net/cidr.ts';
import { type ExpiringRange, findExpiringRanges, type TunnelPeer } from './expiring-ranges.ts';

/**
 * Rules that close at a deadline, also where no daemon runs any more: an element of a set keeps them open, and the kernel removes it.
 * Deadlines are in milliseconds since 1970, by the clock of the service.
 */
export type DeadlineRule =
  /** Refuses what a peer sends to this host or through it, or is sent through it, once the peer has expired. All ranges are of one family. */
  | { readonly rule: 'refuse-expired'; readonly direction: 'in' | 'out'; readonly ranges: readonly ExpiringRange[] }
  /** Refuses what this host would forward out of the tunnel, or into it, once its map is out of date. */
  | { readonly rule: 'refuse-outdated'; readonly direction: 'in' | 'out'; readonly until: number }
  /** Refuses then the probes of peers at this address, with an answer that only this rule gives: another connector takes over. */
  | { readonly rule: 'refuse-probes'; readonly direction: 'probe'; readonly at: Address; readonly until: number };

const directions = ['in', 'out'] as const;

/**
 * The rules for peers that expire; none where no peer does.
 *
 * @param tunnel the peers that WireGuard has on this host
 */
export function expiryRules({ peers }: NetworkMap, self: Peer, tunnel: readonly TunnelPeer[]): readonly DeadlineRule[] {
  const expiring = peers.filter(({ id, expiresAt }) => id !== self.id && expiresAt !== undefined);
  if (expiring.length === 0) return [];
  const byFamily = Map.groupBy(findExpiringRanges(tunnel, expiring), ({ first }) => familyOf(first));
  return [...byFamily.values()].flatMap((ranges) =>
    directions.map((direction) => ({ rule: 'refuse-expired', direction, ranges }) as const),
  );
}

/**
 * The rules of a connector whose map is valid until an instant; none where it is valid for good.
 *
 * @param at its own address, where peers probe it
 */
export function ageRules(until: number | null, at: Address): readonly DeadlineRule[] {
  if (until === null) return [];
  const refusals = directions.map((direction) => ({ rule: 'refuse-outdated', direction, until }) as const);
  return [...refusals, { rule: 'refuse-probes', direction: 'probe', at, until }];
}

/** Those for packets as they arrive, which every host has, and those for packets that are forwarded. */
export function splitDeadlines(rules: readonly DeadlineRule[]) {
  const isEntering = ({ rule, direction }: DeadlineRule) => rule === 'refuse-expired' && direction === 'in';
  return { entering: rules.filter(isEntering), passing: rules.filter((rule) => !isEntering(rule)) };
}
