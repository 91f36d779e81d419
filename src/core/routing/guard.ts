import type { SshClient, Underlay } from '../host-state/actual.ts';
import type { NetworkMap } from '../map/model.ts';
import { type Address, covers, familyOf, hostPrefix, isDefaultRoute, overlaps, type Prefix } from '../net/cidr.ts';
import { PrefixIndex } from '../net/prefix-index.ts';
import { findSpecialKind } from '../net/special-ranges.ts';
import { type KeptOutside, nameService, outsideOf, resolver, sshClient, staysLocal } from './kept-outside.ts';
import { isServerInside, isSessionInside, type TunnelPrefixes } from './nested-prefixes.ts';
import { guardShare, type RouteGuard } from './public-prefixes.ts';

/** Everything that a route into the tunnel must not take away from the host. */
export interface RouteConstraints {
  readonly underlay: Underlay;
  /** The servers that local stub resolvers were observed to query. */
  readonly stubResolvers?: readonly Address[];
  readonly sshClients: readonly SshClient[];
  /** The addresses of the control plane, or of the proxy to it. */
  readonly api: readonly Address[];
  /** True if `api` has the addresses of a proxy. */
  readonly isProxied?: boolean;
  /** What the host reaches through the tunnel itself: a route into it takes nothing away. */
  readonly tunnelPrefixes: TunnelPrefixes;
  /** The prefixes of the host's other networks. */
  readonly taken: readonly { readonly prefix: Prefix; readonly by: string }[];
  /** The interfaces of networks that the host joined after this one. They yield to this network. */
  readonly newerLinks: readonly string[];
  /** The network's range and all its routes. Their public part must not be most of the internet. */
  readonly advertised: readonly Prefix[];
  /** The prefixes of `--allow-route`. */
  readonly allowed: readonly Prefix[];
  /** True for routes in a separate table, whose addresses can stay outside; absent without any. */
  readonly isSeparate?: (prefix: Prefix) => boolean;
}

/** Why `prefix` must not lead into the tunnel, or null. For many, {@link judgeRoutes} is faster. */
export function findRefusal(prefix: Prefix, constraints: RouteConstraints): string | null {
  return judgeRoutes(constraints).refuse(prefix);
}

/** Returns why a network must not move to `range` on this host, or null. */
export function findRangeRefusal(range: Prefix, constraints: RouteConstraints): string | null {
  return judgeRoutes(constraints, range).refuse(range);
}

/** A pass's verdict: whether a route may lead into the tunnel, and what stays outside of it. */
export interface RouteJudgement {
  readonly refuse: RouteGuard;
  /** Returns the addresses in an accepted route that must stay outside the tunnel. */
  readonly findOutside: (prefix: Prefix) => readonly KeptOutside[];
}

/** Indexes the constraints once, for all routes. `range` is the network's own. */
export function judgeRoutes(constraints: RouteConstraints, range = constraints.tunnelPrefixes.range): RouteJudgement {
  const { advertised, allowed, underlay } = constraints;
  const refuseShare = guardShare(advertised, allowed);
  const findOverlap = guardOverlaps(constraints, range);
  const refuseAny: RouteGuard = (prefix) => findSpecialKind(prefix) ?? refuseShare(prefix) ?? findOverlap(prefix);
  const kept = findKept(constraints, refuseAny);
  const isLost = (prefix: Prefix, address: Address) => !staysLocal(prefix, address, underlay.connected);
  const separable = describeSeparable(kept, constraints);
  const findOutside = (prefix: Prefix) => {
    if (allowed.includes(prefix) || constraints.isSeparate?.(prefix) !== true) return [];
    return outsideOf([prefix], separable).filter(({ address }) => isLost(prefix, address));
  };
  const refuse: RouteGuard = (prefix) => {
    if (allowed.includes(prefix)) return isDefaultRoute(prefix) ? findFullTunnelRefusal(prefix, constraints) : null;
    const refusal = refuseAny(prefix);
    if (refusal !== null) return refusal;
    const outside = new Set(findOutside(prefix).map(({ address }) => address));
    return findCovered(prefix, kept, (address) => isLost(prefix, address) && !outside.has(address));
  };
  return { refuse, findOutside };
}

/**
 * The resolvers and SSH clients that an accepted route can leave out one by one. If a route covers
 * the control plane or the gateway, the whole route is refused: without them, no later map could
 * correct a mistake. Addresses in a route of `--allow-route` are meant to be in the tunnel.
 */
function describeSeparable(kept: ProtectedAddresses, { allowed }: RouteConstraints): readonly KeptOutside[] {
  const isAllowed = (address: Address) => allowed.some((prefix) => !isDefaultRoute(prefix) && covers(prefix, address));
  const costly = new Set(kept.filter(([what]) => !separableKinds.has(what)).flatMap(([, addresses]) => addresses));
  const all = kept.filter(([what]) => separableKinds.has(what));
  const outside = all.flatMap(([what, addresses]) => addresses.map((address) => ({ address, what })));
  const unique = new Map<Address, KeptOutside>();
  for (const each of outside) if (!unique.has(each.address)) unique.set(each.address, each);
  return [...unique.values()].filter(({ address }) => !costly.has(address) && !isAllowed(address));
}

const separableKinds: ReadonlySet<string> = new Set([resolver, sshClient]);

/**
 * Returns why this host must not have `address`, or null: it could not reach that address
 * elsewhere. `endpoints` are the addresses at which peers are reached.
 */
export function findAddressConflict(
  address: Address,
  { underlay, sshClients, api, isProxied = false, allowed }: RouteConstraints,
  endpoints: readonly Address[],
) {
  const prefix = hostPrefix(address);
  if (allowed.includes(prefix)) return null;
  const needed: ProtectedAddresses = [
    ...protectedAddresses({ ...underlay, sshClients, api, isProxied }),
    ["a peer's endpoint", endpoints],
  ];
  return findSpecialKind(prefix) ?? findCovered(prefix, needed, () => true);
}

/** Why a network cannot have a route to `prefix`, or null: its range belongs to its peers. */
export function findRangeOverlap(prefix: Prefix, { cidr }: NetworkMap): string | null {
  return covers(cidr, prefix) ? `lies within ${cidr}, the network itself` : null;
}

/** A host can have one full tunnel, of IPv4. Policy rules keep outside what it covers. */
function findFullTunnelRefusal(prefix: Prefix, { taken }: RouteConstraints): string | null {
  if (familyOf(prefix) === 6) return 'is a default route of IPv6, for which this host has no address in the network';
  const other = taken.find((network) => isDefaultRoute(network.prefix));
  return other ? `overlaps ${other.prefix} of ${other.by}` : null;
}

/** A local subnet within a route takes only itself from it. Within the range it hides peers. */
function guardOverlaps({ underlay, taken }: RouteConstraints, range: Prefix): RouteGuard {
  // The full tunnel of another network takes only packets that have no other route.
  const others = taken.filter(({ prefix }) => !isDefaultRoute(prefix));
  const index = new PrefixIndex(others.map((each) => [each.prefix, each]));
  const routed = new Map(underlay.routed.toReversed().map((each) => [each.prefix, each]));
  return (prefix) => {
    const conflicts = prefix === range ? overlaps : covers;
    const subnet = underlay.connected.find((connected) => conflicts(connected.prefix, prefix));
    if (subnet) return `overlaps ${subnet.prefix}, which this host is in (${subnet.link})`;
    const other = index.findOverlap(prefix);
    if (other) return `overlaps ${other.prefix} of ${other.by}`;
    const route = routed.get(prefix);
    return route ? `is already routed to ${route.link} on this host` : null;
  };
}

function findCovered(prefix: Prefix, kept: ProtectedAddresses, isLost: (address: Address) => boolean): string | null {
  for (const [what, addresses] of kept) {
    const lost = addresses.find((address) => covers(prefix, address) && isLost(address));
    if (lost) return `covers ${what} (${lost})`;
  }
  return null;
}

/** The addresses that must stay reachable outside the tunnel, with the name of each kind. */
type ProtectedAddresses = readonly (readonly [what: string, addresses: readonly Address[]])[];

/** The addresses that the host now reaches outside the tunnel. */
function findKept(
  { api, isProxied = false, tunnelPrefixes, underlay, stubResolvers = [], sshClients, allowed }: RouteConstraints,
  refuseAny: RouteGuard,
): ProtectedAddresses {
  const { range } = tunnelPrefixes;
  const takesRange = allowed.includes(range) || refuseAny(range) === null;
  const isServer = (address: Address) => !isServerInside(address, tunnelPrefixes, underlay, takesRange);
  return protectedAddresses({
    api: api.filter(isServer),
    isProxied,
    gateways: underlay.gateways,
    resolvers: [...new Set([...underlay.resolvers, ...stubResolvers])].filter(isServer),
    sshClients: sshClients.filter((each) => !isSessionInside(each, tunnelPrefixes, underlay, takesRange)),
  });
}

function protectedAddresses(
  needed: Pick<RouteConstraints, 'api' | 'isProxied' | 'sshClients'> & Pick<Underlay, 'gateways' | 'resolvers'>,
): ProtectedAddresses {
  return [
    [nameService(needed.isProxied ?? false), needed.api],
    ['the default gateway', needed.gateways],
    [resolver, needed.resolvers],
    [sshClient, needed.sshClients.map(({ address }: SshClient) => address)],
  ];
}
