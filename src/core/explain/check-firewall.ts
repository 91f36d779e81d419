import { describeDrop, describeUnread } from '../forward/foreign/describe-drop.ts';
import type { ForeignDrops } from '../forward/foreign/foreign-drops.ts';
import type { ForwardPath } from '../forward/foreign/path.ts';
import { isIpv6Excepted } from '../forward/ipv6-outside.ts';
import { isLoaded } from '../forward/own-table.ts';
import type { KernelRoute } from '../host-state/kernel-route.ts';
import { type Address, familyOf, hostPrefix } from '../net/cidr.ts';
import { planFirewall, planForwardingOn, planSysctls } from '../reconcile/plan-forwarding.ts';
import { type Check, inconclusive, passes, stops } from './check.ts';
import { usesTunnel } from './check-route.ts';
import type { FoundTarget } from './find-target.ts';
import type { NetworkOnHost } from './view.ts';

/** Returns both paths between peers and an address behind a served route; else empty. */
export function findForwardPaths(address: Address, { view, target }: FoundTarget, there: KernelRoute): ForwardPath[] {
  if (target.is !== 'route' || usesTunnel(target) || there.link === null || there.local) return [];
  const { link } = view.desired;
  const [from, to] = [view.map.cidr, hostPrefix(address)];
  return [
    { iif: link, oif: there.link, from, to, state: 'new' },
    { iif: there.link, oif: link, from: to, to: from, state: 'established' },
  ];
}

/** `drops` is what packet rules of other programs drop; null if they could not be read. */
export function checkForwarding(
  { view: { desired, actual, outdated } }: FoundTarget,
  drops: ForeignDrops | null,
): Check {
  if (outdated !== null) return stops('firewall', outdated.text, outdated.remedy ?? 'cpn doctor');
  const steps = [
    ...planFirewall(desired, actual),
    ...planSysctls(desired, actual),
    ...planForwardingOn(desired, actual),
  ];
  const lacking = steps.flatMap(({ changes }) => changes.map(({ kind, target }) => `${kind} ${target}`));
  if (lacking.length > 0)
    return stops('firewall', `${lacking.join(', ')} differs from its intended state`, '"cpn reconcile" repairs it');
  const [drop] = drops?.forward ?? [];
  if (drop) return stops('firewall', describeDrop(drop), drop.remedy);
  const own = 'the packet rules of cpn accept it from peers';
  if (drops === null) return inconclusive('firewall', `${own}; ${unreadRules}`);
  const unknown = describeUnread(drops.unread?.forward ?? []);
  if (unknown !== null) return inconclusive('firewall', `${own}; ${unknown.found}`, unknown.remedy);
  return passes('firewall', `${own}, and no other rule was found that drops it`);
}

/** Shown if `nft` is missing or fails. */
export const unreadRules =
  'the packet rules of other programs could not be read; "nft list ruleset" as root shows them';

/** Reports that a full tunnel rejects IPv6 that would leave outside it; empty for other packets. */
export function checkIpv6(
  address: Address,
  { map, enabled, desired, actual }: NetworkOnHost,
  there: KernelRoute,
): Check[] {
  const exceptions = desired.ipv6?.exceptions ?? null;
  if (familyOf(address) === 4 || !enabled || exceptions === null) return [];
  if (there.link === null || there.local || exceptions.links.includes(there.link)) return [];
  if (isIpv6Excepted(address, exceptions) || desired.firewall === null || !isLoaded(desired.firewall, actual))
    return [];
  const detail = `the full tunnel of network ${map.name} rejects IPv6 that leaves outside of it`;
  return [stops('firewall', detail, `"cpn set ${desired.link} --allow-ipv6-outside" lets it out`)];
}
