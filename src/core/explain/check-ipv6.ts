import { isIpv6Excepted } from '../forward/ipv6-outside.ts';
import { isLoaded } from '../forward/own-table.ts';
import type { KernelRoute } from '../host-state/kernel-route.ts';
import { type Address, familyOf } from '../net/cidr.ts';
import { type Check, stops } from './check.ts';
import type { NetworkOnHost } from './view.ts';

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
