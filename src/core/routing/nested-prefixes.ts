import type { Actual, SshClient, Underlay } from '../host-state/actual.ts';
import { type Address, covers, isDefaultRoute, lengthOf, maskPrefix, type Prefix } from '../net/cidr.ts';
import { formatInterfaceAddress } from '../net/interface-address.ts';
import type { TunnelConfig } from '../wg-quick/tunnel-config.ts';
import { ownRoutePrefixes } from './bypass-route.ts';
import { isPrivate } from './public-prefixes.ts';

/** A resolver that this host reached through an accepted route. */
export interface TunnelledResolver {
  readonly address: Address;
  readonly route: Prefix;
}

/** What proves that an address is reached through this host's own tunnel, which no route of the network takes away. */
export interface TunnelPrefixes {
  /** The network's own range. */
  readonly range: Prefix;
  /** This host's own address in it. */
  readonly own: Address;
  /** The prefixes that lead into the tunnel now. */
  readonly present: readonly Prefix[];
  /** The prefixes that the last-known-good file leads into the tunnel: after a reboot and `cpn up` they do again. */
  readonly accepted: readonly Prefix[];
  /** Addresses in these that were kept outside the tunnel all the same. */
  readonly outside: readonly Address[];
  /** Resolvers that accepted routes led to when they were last there. */
  readonly tunnelled: readonly TunnelledResolver[];
}

/**
 * The prefixes that lead into the tunnel now, or into that of a network that this host joined later and that stands back. A full
 * tunnel is none of them: it takes only what has no other way.
 */
export function findNested(
  actual: Pick<Actual, 'link' | 'routes' | 'rules' | 'underlay'>,
  newerLinks: readonly string[],
): Prefix[] {
  const { connected, routed } = actual.underlay;
  const others =
    newerLinks.length === 0 ? [] : [...connected, ...routed].filter(({ link }) => newerLinks.includes(link));
  return [...ownRoutePrefixes(actual), ...others.map(({ prefix }) => prefix)].filter(
    (prefix) => !isDefaultRoute(prefix),
  );
}

/** The prefixes that a wg-quick file leads into its tunnel: the range of its address, and the allowed IPs of its peers beyond it. */
export function acceptedBy({ address, peers }: TunnelConfig): readonly Prefix[] {
  const range = maskPrefix(formatInterfaceAddress(address));
  return [range, ...peers.flatMap((peer) => peer.allowedIps).filter((prefix) => !covers(range, prefix))];
}

/**
 * True of a resolver or a control plane that is reached through the tunnel: in the network's range, or where the host's longest
 * route to it leads into the tunnel, or did when the file was written, or when a route to this resolver was last there.
 *
 * @param takesRange whether the range as a whole may be taken here
 */
export function isServerInside(
  address: Address,
  tunnelPrefixes: TunnelPrefixes,
  underlay: Underlay,
  takesRange: boolean,
): boolean {
  if (takesRange && isPrivate(tunnelPrefixes.range) && covers(tunnelPrefixes.range, address)) return true;
  if (tunnelPrefixes.outside.includes(address)) return false;
  const before = tunnelPrefixes.tunnelled.filter((each) => each.address === address).map(({ route }) => route);
  return leadsInto([...tunnelPrefixes.present, ...tunnelPrefixes.accepted, ...before], address, underlay);
}

/**
 * True of an SSH session that goes through the tunnel: it came to this host's address in the network, or the longest route to its client
 * leads into the tunnel now. The file alone is no proof, as the session may have come from outside while the tunnel was down. The
 * range is the exception: sessions from it linger that came through the tunnel to another address of this host. So do sessions to an
 * address in the range that this host no longer has: the kernel keeps them for minutes after the host left the network.
 */
export function isSessionInside(
  { address, local }: SshClient,
  tunnelPrefixes: TunnelPrefixes,
  underlay: Underlay,
  takesRange: boolean,
): boolean {
  const { range, own, present, accepted, outside } = tunnelPrefixes;
  if (local === own) return true;
  if (local !== null && covers(range, local) && !underlay.addresses.includes(local)) return true;
  if (takesRange && accepted.includes(range) && covers(range, address)) return true;
  if (outside.includes(address)) return false;
  return leadsInto(present, address, underlay);
}

/** True where the longest route to an address is one of `prefixes`, as the kernel decides. Two that are equally long prove nothing. */
export function leadsInto(prefixes: readonly Prefix[], address: Address, { connected, routed }: Underlay): boolean {
  const past = [...connected, ...routed].map(({ prefix }) => prefix);
  return longest(prefixes, address) > longest(past, address);
}

/** The length of the longest prefix that covers the address; 0 where only a default route may. */
function longest(prefixes: readonly Prefix[], address: Address): number {
  return prefixes.reduce(
    (length, prefix) => (covers(prefix, address) ? Math.max(length, lengthOf(prefix)) : length),
    0,
  );
}
