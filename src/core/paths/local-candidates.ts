import type { HostLink, Underlay } from '../host-state/actual.ts';
import { type Address, covers, familyOf, hostPrefix, isDefaultRoute, type Prefix, restorePrefix } from '../net/cidr.ts';
import { type SocketEndpoint, unusableAddress } from '../net/endpoint.ts';
import { isPrivate } from '../routing/public-prefixes.ts';

/** The prefixes that lead into the tunnel: no endpoint of a peer may be there. */
export interface TunnelPrefixes {
  readonly range: Prefix;
  /** The routes into the tunnel. A default route does not count: WireGuard's packets bypass it. */
  readonly routes: readonly Prefix[];
}

/** The most candidates of a host, as in the contract. */
export const mostCandidates = 8;
/** Places that IPv4 leaves to IPv6. */
const keptForIpv6 = 3;

/**
 * Returns this host's own endpoints on its links, for peers in the same LAN or over IPv6: private
 * IPv4 addresses first, then global IPv6 addresses, those of uplinks before others. Public IPv4
 * addresses are left out: connectors observe them. So are links to containers and VMs alone,
 * overlays, which the tunnel itself may carry, links that are down, and addresses that lead into
 * the tunnel.
 *
 * @param listenPort the port of the tunnel's interface
 * @param source6 the IPv6 address that packets to others come from, maybe a temporary one: routers
 *   with a firewall accept replies to it alone. Null without IPv6
 */
export function findLocalCandidates(
  underlay: Underlay,
  listenPort: number,
  tunnel: TunnelPrefixes,
  source6: Address | null = null,
): SocketEndpoint[] {
  const placed = underlay.addresses
    .map((address) => ({ address, on: findPlace(address, underlay) }))
    .filter(({ address, on }) => on !== null && isLocal(address) && !leadsIntoTunnel(address, tunnel));
  const uplinks = new Set([...underlay.uplinks, ...(underlay.uplinks6 ?? [])]);
  const rank = ({ on }: (typeof placed)[number]) => (uplinks.has(on?.link ?? '') ? 0 : 1);
  const ranked = placed.toSorted((one, other) => rank(one) - rank(other));
  const ofFour = [...new Set(ranked.map(({ address }) => address).filter((address) => familyOf(address) === 4))];
  // The system lists temporary addresses (RFC 8981) before the stable one of their subnet.
  const ofSix = [
    ...new Map(
      ranked
        .filter(({ address }) => familyOf(address) === 6)
        .map(({ address, on }) => [`${on?.link} ${on?.prefix}`, address]),
    ).values(),
  ];
  const isSource = source6 !== null && isLocal(source6) && !leadsIntoTunnel(source6, tunnel);
  const all6 = [...new Set([...(isSource ? [source6] : []), ...ofSix])];
  const room = mostCandidates - Math.min(all6.length, keptForIpv6);
  return [...ofFour.slice(0, room), ...all6].slice(0, mostCandidates).map((host) => ({ host, port: listenPort }));
}

/** True if packets to the address would enter the tunnel. */
export function leadsIntoTunnel(address: Address, { range, routes }: TunnelPrefixes): boolean {
  return covers(range, address) || routes.some((route) => !isDefaultRoute(route) && covers(route, address));
}

/** True for the containers and VMs of this host alone, and for hosts in its overlays. */
export function leadsInside(address: Address, { connected, links }: Underlay): boolean {
  const inside = new Set(links.filter(isInside).map(({ name }) => name));
  return connected.some(({ prefix, link }) => inside.has(link) && covers(prefix, address));
}

function isInside({ isInternal, isOverlay }: HostLink): boolean {
  return isInternal === true || isOverlay === true;
}

/** The subnet and the link of an own address; null for a link that leads to no other host. */
function findPlace(address: Address, { connected, links }: Underlay): Underlay['connected'][number] | null {
  const closed = new Set(links.filter((each) => isInside(each) || each.isDown).map(({ name }) => name));
  return connected.find(({ prefix, link }) => covers(prefix, address) && !closed.has(link)) ?? null;
}

const globalRange = restorePrefix('2000::/3');

function isLocal(address: Address): boolean {
  if (unusableAddress(address) !== null) return false;
  return familyOf(address) === 4 ? isPrivate(hostPrefix(address)) : covers(globalRange, address);
}
