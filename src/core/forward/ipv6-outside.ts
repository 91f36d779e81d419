import type { Underlay } from '../host-state/actual.ts';
import {
  type Address,
  comparePrefixes,
  covers,
  familyOf,
  hostPrefix,
  lengthOf,
  type Prefix,
  restorePrefix,
} from '../net/cidr.ts';
import type { SocketEndpoint } from '../net/endpoint.ts';
import { isPlainLinkName } from '../net/link-name.ts';
import { resolver } from '../routing/kept-outside.ts';
import { isPrivate } from '../routing/public-prefixes.ts';

/** IPv6 traffic that a host with a full tunnel does not reject. A full tunnel carries only IPv4. */
export interface Ipv6Exceptions {
  /** Interfaces by which nothing goes outside: tunnels, and those to containers and VMs. */
  readonly links: readonly string[];
  /** Destinations, each with the reason. */
  readonly prefixes: readonly Ipv6Exception[];
  /** Endpoints of the host's other networks, and the fixed source ports of all networks. */
  readonly endpoints: readonly SocketEndpoint[];
  readonly ports: readonly number[];
}

export interface Ipv6Exception {
  readonly prefix: Prefix;
  /** Null if the host's own routes decide. */
  readonly link: string | null;
  readonly gateway: Address | null;
  readonly why: string;
}

/** Why the subnet of an address is not rejected. */
export const ownSubnet = 'this host is in this subnet';

export interface Ipv6Inputs {
  readonly link: string;
  readonly underlay: Underlay;
  /** The addresses of the control planes of all networks of this host. */
  readonly api: readonly Address[];
  readonly endpoints: readonly SocketEndpoint[];
  readonly ports: readonly number[];
  /** True to reject also public subnets, which any neighbour can announce, and single routes. */
  readonly isStrict: boolean;
}

/** Finds the IPv6 traffic that stays possible on a host with a full tunnel. */
export function findIpv6Exceptions({ link, underlay, api, endpoints, ports, isStrict }: Ipv6Inputs): Ipv6Exceptions {
  const { links, tunnels = [], connected, routed, reached, resolvers, addresses, gateways, uplinks6 = [] } = underlay;
  // A VPN or a container has an interface of another kind, unless it is an uplink.
  const announced = routed
    .filter(({ protocol }) => protocol === 'ra' || protocol === 'dhcp')
    .map((route) => route.link);
  const outward = new Set([...uplinks6, ...announced]);
  // The rules are not reloaded for an interface by which no IPv6 leaves.
  const used = new Set([...connected, ...(reached ?? routed)].filter(isOf6).map((each) => each.link));
  const inner = links
    .filter(({ name, kind, isInternal }) => isInternal || (kind === 'other' && !outward.has(name)))
    .map(({ name }) => name);
  const isTrusted = (prefix: Prefix) => !isStrict || isPrivate(prefix);
  const subnets = connected
    .filter(({ prefix }) => familyOf(prefix) === 6 && lengthOf(prefix) >= 48 && isTrusted(prefix))
    .map((each): Ipv6Exception => ({ ...each, gateway: null, why: ownSubnet }));
  const routes = routed.flatMap(({ prefix, link: by, gateway = null, protocol = null }): Ipv6Exception[] => {
    if (familyOf(prefix) === 4) return [];
    const isOnLink = gateway === null && lengthOf(prefix) >= 64;
    const isOwnSubnet = isOnLink && isTrusted(prefix) && addresses.some((own) => covers(prefix, own));
    const isMade = !isStrict && protocol !== 'ra' && protocol !== 'dhcp' && lengthOf(prefix) >= 32;
    if (!isOwnSubnet && !isMade) return [];
    const why = isOwnSubnet ? ownSubnet : `a route of this host (${protocol ?? 'unknown'})`;
    return [{ prefix, link: by, gateway, why }];
  });
  const hosts = (all: readonly Address[], why: string) =>
    [...new Set(all)]
      .filter((address) => familyOf(address) === 6)
      .map((address): Ipv6Exception => ({ prefix: hostPrefix(address), link: null, gateway: null, why }));
  const routers = isStrict ? gateways.filter((address) => !near.some((range) => covers(range, address))) : [];
  const prefixes = [
    ...subnets,
    ...routes,
    ...hosts(routers, 'the default gateway'),
    ...hosts(api, 'the control plane'),
    ...hosts(resolvers, resolver),
  ];
  const known = new Map(prefixes.toReversed().map((each) => [each.prefix, each]));
  return {
    links: [...new Set(['lo', link, ...[...tunnels, ...inner].filter((name) => used.has(name))])]
      .filter(isPlainLinkName)
      .toSorted(),
    prefixes: [...known.values()].toSorted((a, b) => comparePrefixes(a.prefix, b.prefix)),
    endpoints: uniqueEndpoints(endpoints.filter(({ host }) => familyOf(host) === 6)),
    ports: [...new Set(ports)].toSorted((a, b) => a - b),
  };
}

const isOf6 = ({ prefix }: { readonly prefix: Prefix }) => familyOf(prefix) === 6;

/** IPv6 prefixes that are never outside (RFC 4291): this host, the link, and groups. */
export const near = ['::1/128', 'fe80::/10', 'ff00::/8'].map((text) => restorePrefix(text));

/** True if IPv6 to this address is not rejected. */
export function isIpv6Excepted(address: Address, { prefixes }: Ipv6Exceptions): boolean {
  return [...near, ...prefixes.map(({ prefix }) => prefix)].some((prefix) => covers(prefix, address));
}

function uniqueEndpoints(endpoints: readonly SocketEndpoint[]): SocketEndpoint[] {
  const byName = new Map(endpoints.map((each) => [`${each.host} ${each.port}`, each]));
  return [...byName].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each);
}
