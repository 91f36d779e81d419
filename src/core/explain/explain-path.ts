import type { ForeignDrops } from '../forward/foreign/foreign-drops.ts';
import type { KernelRoute } from '../host-state/kernel-route.ts';
import { type Address, isDefaultRoute } from '../net/cidr.ts';
import type { ReturnPath } from '../routing/return-path.ts';
import { type Check, inconclusive } from './check.ts';
import { checkAnswers } from './check-answers.ts';
import { checkForwarding } from './check-firewall.ts';
import { checkInbound } from './check-inbound.ts';
import { checkIpv6 } from './check-ipv6.ts';
import { checkNetwork } from './check-network.ts';
import { checkReversePath } from './check-reverse-path.ts';
import { checkForeign, checkRoute, describeElsewhere, describeInstead, usesTunnel } from './check-route.ts';
import { checkAllowedIps, checkEndpoint, checkHandshake, checkMtu } from './check-tunnel.ts';
import { explainOutside, type FoundTarget, remedyOutside } from './find-target.ts';
import type { NetworkOnHost } from './view.ts';

/** The host's lookups for a packet, in addition to {@link NetworkOnHost}. */
export interface PathFacts {
  /** What the kernel does with it. */
  readonly there: KernelRoute;
  /** What it does with one from our own address, as the reverse path filter sees the answer; null when that cannot be asked. */
  readonly back: KernelRoute | null;
  /** What it does with WireGuard's own packets to the endpoint of the peer; null where none is known. */
  readonly outer: KernelRoute | null;
  /** What others' packet rules drop of what this host forwards there, or of what its peers send it; null when they could not be read. */
  readonly drops: ForeignDrops | null;
  /** What it does with answers of this host to the address; empty without a full tunnel. */
  readonly answers: readonly ReturnPath[];
}

/**
 * The checks that a packet of this host to an address in a network meets, in their order.
 *
 * @param now seconds since the epoch
 */
export function explainPath(
  address: Address,
  found: FoundTarget,
  { there, back, outer, drops, answers }: PathFacts,
  now: number,
): Check[] {
  const network = checkNetwork(address, found);
  if (network.ok === false) return [network, describeInstead(there)];
  const begin = [network, checkRoute(address, found, there)];
  if (found.target.is === 'self') return begin;
  if (!usesTunnel(found.target)) return [...begin, checkForwarding(found, drops)];
  return [
    ...begin,
    checkAllowedIps(address, found.view),
    checkReversePath(address, found.view, back),
    ...checkInbound(address, found.view, drops, now),
    ...checkEndpoint(address, found.view, outer),
    checkHandshake(address, found.view, now),
    checkMtu(address, found.view),
    ...(isOfFullTunnel(found) ? checkAnswers(answers, found.view) : []),
  ];
}

/** The checks of a packet that none of the networks carries. */
export function explainOther(
  address: Address,
  views: readonly NetworkOnHost[],
  there: KernelRoute,
  answers: readonly ReturnPath[] = [],
): Check[] {
  const why = views.flatMap((view) => explainOutside(address, view) ?? []);
  const outside = 'outside every network of this host: cpn has no part in it';
  return [
    inconclusive('network', [outside, ...why].join('; '), remedyOutside(address, views)),
    checkForeign(views, there) ?? describeElsewhere(there),
    ...views.filter(({ desired }) => desired.rules.length > 0).flatMap((view) => checkAnswers(answers, view)),
    ...views.flatMap((view) => checkIpv6(address, view, there)),
  ];
}

/** True for an address that only the default route of a network leads to: clients outside have such addresses too. */
function isOfFullTunnel({ target }: FoundTarget): boolean {
  return target.is === 'route' && isDefaultRoute(target.report.prefix);
}
