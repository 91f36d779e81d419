import type { Actual, SshClient, Underlay } from '../host-state/actual.ts';
import {
  type Address,
  covers,
  formatInterfaceAddress,
  isDefaultRoute,
  lengthOf,
  maskPrefix,
  type Prefix,
} from '../net/cidr.ts';
import type { TunnelConfig } from '../wg-quick/parse.ts';
import { ownRoutePrefixes } from './bypass-route.ts';
import { isPrivate } from './public-prefixes.ts';

/** A resolver that this host reached through an accepted route. */
export interface TunnelledResolver {
  readonly address: Address;
  readonly route: Prefix;
}

/** Facts that prove that an address is inside the tunnel: no route takes it away then. */
export interface TunnelPrefixes {
  readonly range: Prefix;
  /** This host's own address in the network. */
  readonly own: Address;
  /** The prefixes that now lead into the tunnel. */
  readonly present: readonly Prefix[];
  /** Prefixes of the last-known-good file, which lead there again after a reboot and `cpn up`. */
  readonly accepted: readonly Prefix[];
  /** Addresses in these prefixes that were still kept outside the tunnel. */
  readonly outside: readonly Address[];
  /** Resolvers that accepted routes led to when these routes were last present. */
  readonly tunnelled: readonly TunnelledResolver[];
}

/**
 * Returns the prefixes that lead into the tunnel, or into that of a later network, which yields.
 * Without default routes: a full tunnel takes only packets that have no other route.
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

/** Prefixes that a file leads into its tunnel: the address's range, and allowed IPs beyond it. */
export function acceptedBy({ address, peers }: TunnelConfig): readonly Prefix[] {
  const range = maskPrefix(formatInterfaceAddress(address));
  return [range, ...peers.flatMap((peer) => peer.allowedIps).filter((prefix) => !covers(range, prefix))];
}

/**
 * True if a resolver or a control plane is reached through the tunnel:
 * - its address lies in the network's range, or
 * - the host's longest route to it leads into the tunnel, or
 * - that route did so when the file was written, or
 * - a route to this resolver did so when it was last present.
 *
 * @param takesRange true if the whole range may lead into the tunnel on this host
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
 * True if an SSH session goes through the tunnel: it came to the host's address in the network, or
 * the longest route to its client now leads into the tunnel. The file alone is no proof, because
 * the session may have come from outside while the tunnel was down.
 *
 * The range is the exception: sessions through the tunnel to another address of the host can
 * linger. Sessions to an address in the range that the host no longer has also count. The kernel
 * keeps them for minutes after the host left the network.
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

/** True if the longest route to an address is in `prefixes`. Equal lengths prove nothing. */
export function leadsInto(prefixes: readonly Prefix[], address: Address, { connected, routed }: Underlay): boolean {
  const past = [...connected, ...routed].map(({ prefix }) => prefix);
  return longest(prefixes, address) > longest(past, address);
}

/** The length of the longest prefix that covers the address; 0 if only a default route may. */
function longest(prefixes: readonly Prefix[], address: Address): number {
  return prefixes.reduce(
    (length, prefix) => (covers(prefix, address) ? Math.max(length, lengthOf(prefix)) : length),
    0,
  );
}
