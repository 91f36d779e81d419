import { type Address, hostPrefix } from '../cidr.ts';
import type { ForwardDrop } from '../forward/find-drops.ts';
import type { ForwardPath } from '../forward/path.ts';
import type { KernelRoute } from '../kernel-route.ts';
import { planFirewall, planOpening, planSysctls } from '../plan-forwarding.ts';
import { type Check, leavesOpen, passes, stops } from './check.ts';
import { goesThrough } from './check-route.ts';
import type { Found } from './find-target.ts';

/** The ways of the peers' packets to an address behind a route that this host serves, and of the answers; none to any other. */
export function findForwardPaths(address: Address, { view, target }: Found, there: KernelRoute): ForwardPath[] {
  if (target.is !== 'route' || goesThrough(target) || there.link === null || there.local) return [];
  const { link } = view.desired;
  const [from, to] = [view.map.cidr, hostPrefix(address)];
  return [
    { iif: link, oif: there.link, from, to, state: 'new' },
    { iif: there.link, oif: link, from: to, to: from, state: 'established' },
  ];
}

/**
 * Tells whether this connector forwards what its peers send to a route that it serves.
 *
 * @param drops what somebody else's packet rules drop of it; null when that could not be read
 */
export function checkForwarding({ view: { desired, actual } }: Found, drops: readonly ForwardDrop[] | null): Check {
  const steps = [...planFirewall(desired, actual), ...planSysctls(desired, actual), ...planOpening(desired, actual)];
  const lacking = steps.flatMap(({ changes }) => changes.map(({ kind, target }) => `${kind} ${target}`));
  if (lacking.length > 0)
    return stops('firewall', `${lacking.join(', ')} is not as it should be`, '"cpn reconcile" puts it right');
  const [drop] = drops ?? [];
  if (drop) return stops('firewall', describeDrop(drop), drop.remedy);
  const own = 'our own table lets it through from the peers';
  if (drops === null) return leavesOpen('firewall', `${own}; the packet rules of others could not be read`);
  return passes('firewall', `${own}, and no rule of others is seen to drop it`);
}

function describeDrop({ family, table, author, reason }: ForwardDrop): string {
  const by = author === null ? '' : `, probably made by ${author}`;
  return `what the peers send there, or the answer, does not get through nft table ${family} ${table}${by} (${reason})`;
}
