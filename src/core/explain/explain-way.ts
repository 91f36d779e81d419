import type { Address } from '../cidr.ts';
import type { ForwardDrop } from '../forward/find-drops.ts';
import type { KernelRoute } from '../kernel-route.ts';
import { type Check, leavesOpen } from './check.ts';
import { checkForwarding } from './check-firewall.ts';
import { checkNetwork } from './check-network.ts';
import { checkReversePath } from './check-reverse-path.ts';
import { checkRoute, describeElsewhere, describeInstead, goesThrough } from './check-route.ts';
import { checkAllowedIps, checkHandshake, checkMtu } from './check-tunnel.ts';
import { explainOutside, type Found } from './find-target.ts';
import type { View } from './view.ts';

/** What the host says of a packet, beside what {@link View} holds. */
export interface Answers {
  /** What the kernel does with it. */
  readonly there: KernelRoute;
  /** What it does with one from our own address, as the reverse path filter sees the answer; null when that cannot be asked. */
  readonly back: KernelRoute | null;
  /** What others' packet rules drop of what this host forwards there; null when they could not be read. */
  readonly drops: readonly ForwardDrop[] | null;
}

/**
 * The checks that a packet of this host to an address in a network meets, in their order.
 *
 * @param now seconds since the epoch
 */
export function explainWay(address: Address, found: Found, { there, back, drops }: Answers, now: number): Check[] {
  const network = checkNetwork(address, found);
  if (network.ok === false) return [network, describeInstead(there)];
  const begin = [network, checkRoute(address, found, there)];
  if (found.target.is === 'self') return begin;
  if (!goesThrough(found.target)) return [...begin, checkForwarding(found, drops)];
  return [
    ...begin,
    checkAllowedIps(address, found.view),
    checkReversePath(address, found.view, back),
    leavesOpen('firewall', 'the packet rules of others on this host are not looked at'),
    checkHandshake(address, found.view, now),
    checkMtu(address, found.view),
  ];
}

/** The checks of a packet that none of the networks carries. */
export function explainOther(address: Address, views: readonly View[], there: KernelRoute): Check[] {
  const why = views.flatMap((view) => explainOutside(address, view) ?? []);
  const outside = 'outside every network of this host: cpn has no part in it';
  return [leavesOpen('network', [outside, ...why].join('; ')), describeElsewhere(there)];
}
