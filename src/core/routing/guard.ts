import type { SshClient, Underlay } from '../host-state/actual.ts';
import type { NetworkMap } from '../map/model.ts';
import {
  type Address,
  covers,
  familyOf,
  hostPrefix,
  isDefaultRoute,
  lengthOf,
  overlaps,
  type Prefix,
} from '../net/cidr.ts';
import { PrefixIndex } from '../net/prefix-index.ts';
import { memoizeByString } from '../util/memo.ts';
import { isServerInside, isSessionInside, type TunnelPrefixes } from './nested-prefixes.ts';
import { guardShare, type RouteGuard } from './public-prefixes.ts';

/** Everything that a route into the tunnel must not take away from this host. */
export interface RouteConstraints {
  readonly surroundings: Underlay;
  readonly sshClients: readonly SshClient[];
  /** The addresses of the control plane, or of the proxy to it. */
  readonly api: readonly Address[];
  /** True where they are those of a proxy. */
  readonly isProxied?: boolean;
  /** What is reached through the tunnel itself, and so is not taken away by it. */
  readonly inside: TunnelPrefixes;
  /** What the other networks of this host have taken. */
  readonly taken: readonly { readonly prefix: Prefix; readonly by: string }[];
  /** The interfaces of networks that this host joined later than this one: they stand back. */
  readonly later: readonly string[];
  /** All that the network leads to, of which the public part must not be most of the internet. */
  readonly advertised: readonly Prefix[];
  /** Prefixes that a person lets through. */
  readonly allowed: readonly Prefix[];
}

/** Why `prefix` must not lead into the tunnel, or null when it may; of many prefixes {@link guardRoutes} is quicker. */
export function findRefusal(prefix: Prefix, constraints: RouteConstraints): string | null {
  return guardRoutes(constraints)(prefix);
}

/** The guard of a pass: it indexes the constraints once, for all routes of the network. */
export function guardRoutes(constraints: RouteConstraints): RouteGuard {
  const { advertised, allowed } = constraints;
  const refuseShare = guardShare(advertised, allowed);
  const findOverlap = guardOverlaps(constraints);
  const refuseAny: RouteGuard = (prefix) => findKindRefusal(prefix) ?? refuseShare(prefix) ?? findOverlap(prefix);
  const kept = findKept(constraints, refuseAny);
  return (prefix) => {
    if (allowed.includes(prefix)) return isDefaultRoute(prefix) ? findFullTunnelRefusal(prefix, constraints) : null;
    return refuseAny(prefix) ?? findCovered(prefix, kept);
  };
}

/**
 * Says why this host must not have `address` in the tunnel, or null when it may: what it has itself it cannot reach elsewhere.
 *
 * @param endpoints the addresses at which the peers are reached
 */
export function findAddressConflict(
  address: Address,
  { surroundings, sshClients, api, isProxied = false, allowed }: RouteConstraints,
  endpoints: readonly Address[],
) {
  const prefix = hostPrefix(address);
  if (allowed.includes(prefix)) return null;
  const needed: ProtectedAddresses = [
    ...protectedAddresses({ ...surroundings, sshClients, api, isProxied }),
    ["a peer's endpoint", endpoints],
  ];
  return findKindRefusal(prefix) ?? findCovered(prefix, needed);
}

/** Says why a route to `prefix` is none of a network's own making, or null: its addresses belong to its peers. */
export function findRangeOverlap(prefix: Prefix, { cidr }: NetworkMap): string | null {
  return covers(cidr, prefix) ? `lies within ${cidr}, the network itself` : null;
}

/**
 * A full tunnel that a person wants is one of IPv4, and one on a host. It keeps out, by policy rules, what it covers.
 */
function findFullTunnelRefusal(prefix: Prefix, { taken }: RouteConstraints): string | null {
  if (familyOf(prefix) === 6) return 'is a default route of IPv6, for which this host has no address in the network';
  const other = taken.find((network) => isDefaultRoute(network.prefix));
  return other ? `overlaps ${other.prefix} of ${other.by}` : null;
}

const findKindRefusal = memoizeByString((prefix: Prefix): string | null => {
  if (lengthOf(prefix) === 0) return 'is the default route';
  if (lengthOf(prefix) === 1) return 'is half of the default route';
  const special = specialRanges.find(([range]) => overlaps(range, prefix));
  return special ? `overlaps ${special[1]} addresses` : null;
});

function guardOverlaps({ surroundings, taken }: RouteConstraints): RouteGuard {
  // The full tunnel of another network takes only what has no other route.
  const others = taken.filter(({ prefix }) => !isDefaultRoute(prefix));
  const index = new PrefixIndex(others.map((each) => [each.prefix, each]));
  const routed = new Map(surroundings.routed.toReversed().map((each) => [each.prefix, each]));
  return (prefix) => {
    const subnet = surroundings.connected.find((connected) => overlaps(connected.prefix, prefix));
    if (subnet) return `overlaps ${subnet.prefix}, which this host is in (${subnet.link})`;
    const other = index.findOverlap(prefix);
    if (other) return `overlaps ${other.prefix} of ${other.by}`;
    const route = routed.get(prefix);
    return route ? `leads to ${route.link} on this host already` : null;
  };
}

function findCovered(prefix: Prefix, kept: ProtectedAddresses): string | null {
  for (const [what, addresses] of kept) {
    const lost = addresses.find((address) => covers(prefix, address));
    if (lost) return `covers ${what} (${lost})`;
  }
  return null;
}

/** What must stay within reach outside the tunnel, by what it is called. */
type ProtectedAddresses = readonly (readonly [what: string, addresses: readonly Address[]])[];

/** What this host reaches outside the tunnel now. */
function findKept(
  { api, isProxied = false, inside, surroundings, sshClients, allowed }: RouteConstraints,
  refuseAny: RouteGuard,
): ProtectedAddresses {
  const { range } = inside;
  const takesRange = allowed.includes(range) || refuseAny(range) === null;
  const isServer = (address: Address) => !isServerInside(address, inside, surroundings, takesRange);
  return protectedAddresses({
    api: api.filter(isServer),
    isProxied,
    gateways: surroundings.gateways,
    resolvers: surroundings.resolvers.filter(isServer),
    sshClients: sshClients.filter((each) => !isSessionInside(each, inside, surroundings, takesRange)),
  });
}

function protectedAddresses(
  needed: Pick<RouteConstraints, 'api' | 'isProxied' | 'sshClients'> & Pick<Underlay, 'gateways' | 'resolvers'>,
): ProtectedAddresses {
  return [
    [needed.isProxied ? 'the proxy to the control plane' : 'the control plane', needed.api],
    ['the default gateway', needed.gateways],
    ['a resolver', needed.resolvers],
    ['an SSH client', needed.sshClients.map(({ address }: SshClient) => address)],
  ];
}

/** RFC 6890 and RFC 4291: ranges that never lead to another host's network, or that lead to any host. */
export const specialRanges = [
  ['0.0.0.0/8', 'unspecified'],
  ['127.0.0.0/8', 'loopback'],
  ['169.254.0.0/16', 'link-local'],
  ['224.0.0.0/4', 'multicast'],
  ['240.0.0.0/4', 'reserved'],
  ['::/127', 'loopback'],
  ['fe80::/10', 'link-local'],
  ['ff00::/8', 'multicast'],
  // It stands for all of IPv4 (RFC 6052).
  ['64:ff9b::/96', 'NAT64'],
] as unknown as readonly (readonly [Prefix, string])[];
