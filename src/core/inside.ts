import type { Actual, SshClient, Surroundings } from './actual.ts';
import { type Address, covers, lengthOf, maskPrefix, type Prefix } from './cidr.ts';
import { ownWays } from './detour.ts';
import { isDefaultRoute } from './full-tunnel.ts';
import { formatInterfaceAddress, type TunnelConfig } from './model.ts';
import { perObject } from './per-object.ts';

/** What proves that an address is reached through this host's own tunnel, which no route of the network takes away. */
export interface Inside {
  /** The network's own range. */
  readonly range: Prefix;
  /** This host's own address in it. */
  readonly own: Address;
  /** The prefixes that lead into the tunnel now. */
  readonly ways: readonly Prefix[];
  /** The prefixes that the last-known-good file leads into the tunnel: after a reboot and `cpn up` they do again. */
  readonly accepted: readonly Prefix[];
}

/** RFC 1918 and RFC 6598. A range of public addresses proves nothing: its addresses are in use on the internet. */
const privateRanges = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
] as readonly string[] as Prefix[];

/** True for a range of private addresses. */
function isPrivate(range: Prefix): boolean {
  return privateRanges.some((each) => covers(each, range));
}

/**
 * The prefixes that lead into the tunnel now, or into that of a network that this host joined later and that stands back. A full
 * tunnel is none of them: it takes only what has no other way.
 */
export function findWays(actual: Pick<Actual, 'link' | 'routes' | 'surroundings'>, later: readonly string[]): Prefix[] {
  const { connected, routed } = actual.surroundings;
  const others = later.length === 0 ? [] : [...connected, ...routed].filter(({ link }) => later.includes(link));
  return [...ownWays(actual), ...others.map(({ prefix }) => prefix)].filter((prefix) => !isDefaultRoute(prefix));
}

/** The prefixes that a wg-quick file leads into its tunnel: the range of its address, and the allowed IPs of its peers beyond it. */
export const acceptedBy = perObject(({ address, peers }: TunnelConfig): readonly Prefix[] => {
  const range = maskPrefix(formatInterfaceAddress(address));
  return [range, ...peers.flatMap((peer) => peer.allowedIps).filter((prefix) => !covers(range, prefix))];
});

/**
 * True of a resolver or a control plane that is reached through the tunnel: in the network's range, or where the host's longest
 * route to it leads into the tunnel, or did when the file was written.
 *
 * @param takesRange whether the range as a whole may be taken here
 */
export function isServerInside(
  address: Address,
  inside: Inside,
  surroundings: Surroundings,
  takesRange: boolean,
): boolean {
  if (takesRange && isPrivate(inside.range) && covers(inside.range, address)) return true;
  return leadsInto([...inside.ways, ...inside.accepted], address, surroundings);
}

/**
 * True of an SSH session that goes through the tunnel: it came to this host's address in the network, or the longest route to its client
 * leads into the tunnel now. The file alone is no proof, as the session may have come from outside while the tunnel was down. The
 * range is the exception: sessions from it linger that came through the tunnel to another address of this host. So do sessions to an
 * address in the range that this host no longer has: the kernel keeps them for minutes after the host left the network.
 */
export function isSessionInside(
  { address, local }: SshClient,
  inside: Inside,
  surroundings: Surroundings,
  takesRange: boolean,
): boolean {
  const { range, own, ways, accepted } = inside;
  if (local === own) return true;
  if (local !== null && covers(range, local) && !surroundings.addresses.includes(local)) return true;
  if (takesRange && accepted.includes(range) && covers(range, address)) return true;
  return leadsInto(ways, address, surroundings);
}

/** The kernel uses the longest match. Two that are equally long prove nothing. */
function leadsInto(ways: readonly Prefix[], address: Address, { connected, routed }: Surroundings): boolean {
  const past = [...connected, ...routed].map(({ prefix }) => prefix);
  return longest(ways, address) > longest(past, address);
}

/** The length of the longest prefix that covers the address; 0 where only a default route may. */
function longest(prefixes: readonly Prefix[], address: Address): number {
  return prefixes.reduce(
    (length, prefix) => (covers(prefix, address) ? Math.max(length, lengthOf(prefix)) : length),
    0,
  );
}
