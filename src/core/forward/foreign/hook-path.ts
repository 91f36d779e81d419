import { restorePrefix } from '../../net/cidr.ts';
import type { FilterChain } from './chain.ts';
import type { PacketPath } from './path.ts';

/**
 * Priorities at which the kernel finds the connection of a packet, and translates addresses
 * (linux/netfilter_ipv4.h).
 */
const conntrack = -200;
const sourceNat = 100;

const anywhere = restorePrefix('0.0.0.0/0');

/**
 * Returns the path as a chain at a hook sees its packets. Properties that are unknown at that hook
 * match no rule with certainty.
 */
export function pathAt<Path extends PacketPath>({ hook, priority }: FilterChain, path: Path): Path {
  if (hook === 'prerouting') {
    // Replies to a masqueraded connection have this host's address until then.
    const to = path.state === 'established' ? anywhere : path.to;
    return { ...path, oif: null, toward: path.oif, to, ...(priority < conntrack && { isUntracked: true }) };
  }
  if (hook === 'postrouting') return { ...path, iif: null, ...(priority >= sourceNat && { from: anywhere }) };
  return path;
}
