import type { ForeignDrops } from '../forward/foreign/foreign-drops.ts';
import type { KernelRoute, ReturnPath } from '../host-state/kernel-route.ts';
import { type Address, isDefaultRoute } from '../net/cidr.ts';
import { type Check, inconclusive } from './check.ts';
import { checkForwarding, checkIpv6 } from './check-firewall.ts';
import { checkInbound } from './check-inbound.ts';
import { checkNetwork } from './check-network.ts';
import { checkPath } from './check-path.ts';
import { checkAnswers, checkReversePath } from './check-reverse-path.ts';
import { checkForeign, checkRoute, describeElsewhere, describeInstead, usesTunnel } from './check-route.ts';
import { checkRules, type ExplainedFlow } from './check-rules.ts';
import { checkAllowedIps, checkEndpoint, checkHandshake, checkMtu } from './check-tunnel.ts';
import { explainOutside, type FoundTarget, remedyOutside } from './find-target.ts';
import type { NetworkOnHost } from './view.ts';

/** The host's lookups for a packet, in addition to {@link NetworkOnHost}. */
export interface PathFacts {
  /** The kernel's route for the packet. */
  readonly there: KernelRoute;
  /** The route from our own address, which the reverse path filter evaluates; null if unknown. */
  readonly back: KernelRoute | null;
  /** The route of WireGuard's own packets to the peer; null if no endpoint is known. */
  readonly outer: KernelRoute | null;
  /** What packet rules of other programs drop on the paths; null if they could not be read. */
  readonly drops: ForeignDrops | null;
  /** The kernel's routes for replies of this host to the address; empty without a full tunnel. */
  readonly answers: readonly ReturnPath[];
}

/** Returns the checks of a packet in the order of its path. `now` is seconds since the epoch. */
export function explainPath(
  address: Address,
  found: FoundTarget,
  { there, back, outer, drops, answers }: PathFacts,
  now: number,
  flow: ExplainedFlow | null = null,
): Check[] {
  const network = checkNetwork(address, found);
  if (network.ok === false) return [network, describeInstead(there)];
  const path = found.target.is === 'peer' ? checkPath(found.target.peer, found.view, now) : [];
  const begin = [network, ...path, checkRoute(address, found, there)];
  if (found.target.is === 'self') return begin;
  if (!usesTunnel(found.target)) return [...begin, checkForwarding(found, drops)];
  return [
    ...begin,
    checkAllowedIps(address, found.view),
    ...checkRules(address, found.view, flow),
    checkReversePath(address, found.view, back),
    ...checkInbound(address, found.view, drops, now),
    ...checkEndpoint(address, found.view, outer),
    checkHandshake(address, found.view, now),
    checkMtu(address, found.view),
    ...(isOfFullTunnel(found) ? checkAnswers(answers, found.view) : []),
  ];
}

/** Returns the checks of a packet that none of the networks carries. */
export function explainOther(
  address: Address,
  views: readonly NetworkOnHost[],
  there: KernelRoute,
  answers: readonly ReturnPath[] = [],
): Check[] {
  const why = views.flatMap((view) => explainOutside(address, view) ?? []);
  const outside = 'outside every network of this host: cpn does not route it';
  return [
    inconclusive('network', [outside, ...why].join('; '), remedyOutside(address, views)),
    checkForeign(views, there) ?? describeElsewhere(there),
    ...views.filter(({ desired }) => desired.rules.length > 0).flatMap((view) => checkAnswers(answers, view)),
    ...views.flatMap((view) => checkIpv6(address, view, there)),
  ];
}

/** True for an address to which only a default route leads, like that of any client outside. */
function isOfFullTunnel({ target }: FoundTarget): boolean {
  return target.is === 'route' && isDefaultRoute(target.report.prefix);
}
