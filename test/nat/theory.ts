import type { Site } from '../lab/nat/nat-lab.ts';
import type { Router } from '../lab/nat/router.ts';

/** How two sites try to reach each other. */
export interface Meeting {
  /** `local`: each gets the endpoint of the other in its LAN. Without it, each gets the endpoint that a connector observes. */
  readonly by?: 'local';
  /** The second begins after a packet of the first has come to its router. Without it, both begin at the same moment. */
  readonly isLate?: boolean;
}

/** Whether two sites get a direct path, by RFC 4787 and by what Linux does. */
export function isReachable(first: Site, second: Site, { by, isLate = false }: Meeting = {}): boolean {
  const [all, others] = [first.network.routers, second.network.routers];
  if (by === 'local') return all[0] === others[0];
  if ([...all, ...others].some(({ nat }) => nat.udp === 'drop')) return false;
  if (hasIpv6(first) && hasIpv6(second)) return true;
  const shared = all.find((each) => others.includes(each));
  if (shared !== undefined && !shared.nat.hairpin) return false;
  const one = sideOf(all.filter((each) => !others.includes(each)));
  const other = sideOf(others.filter((each) => !all.includes(each)));
  // An early packet makes a flow of the router itself. The host's own flow to the same endpoint then gets another port.
  const late = isLate && other.isSpoiled ? { ...other, isSymmetric: true } : other;
  return isDelivered(one, late) || isDelivered(late, one);
}

/** Whether a site has IPv6. */
export function hasIpv6({ network }: Site): boolean {
  return network.routers.every(({ nat }) => nat.ipv6 === 'firewall');
}

/** What the routers of a site are together. */
interface Side {
  readonly isSymmetric: boolean;
  readonly filtersPorts: boolean;
  readonly isSpoiled: boolean;
}

const sideOf = (routers: readonly Router[]): Side => ({
  isSymmetric: routers.some(({ nat }) => nat.mapping === 'symmetric'),
  filtersPorts: routers.some(({ nat }) => nat.filtering === 'address-and-port'),
  isSpoiled: routers.some(({ nat }) => nat.unsolicited === 'accept'),
});

/**
 * Whether the packets of one side reach the observed endpoint of the other, where both send to the observed endpoints. The answer
 * then goes back to where the packets came from, and arrives.
 */
function isDelivered(from: Side, to: Side): boolean {
  return !to.isSymmetric && !(from.isSymmetric && to.filtersPorts);
}
