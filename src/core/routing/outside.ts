import type { Underlay } from '../host-state/actual.ts';
import { routeProtocol } from '../host-state/marks.ts';
import {
  type Address,
  comparePrefixes,
  covers,
  familyOf,
  hostPrefix,
  lengthOf,
  type Prefix,
  rangeOf,
} from '../net/cidr.ts';
import { specialRanges } from '../net/special-ranges.ts';
import { isPrivate } from './public-prefixes.ts';

/** A part of IPv4 that the main table leads past a full tunnel. */
export interface OutsideRoute {
  readonly prefix: Prefix;
  readonly link: string;
  /** Null for an on-link route. */
  readonly gateway: Address | null;
  /** The route's protocol in iproute2; null for the subnet of an address, and if unknown. */
  readonly protocol: string | null;
  /**
   * True if a strict tunnel leaves the route outside too: the gateway, and private on-link prefixes
   * no wider than a /16. A DHCP server can forge the other routes (CVE-2024-3661, TunnelVision;
   * CVE-2023-36672 and CVE-2023-36673, TunnelCrack).
   */
  readonly isExpected: boolean;
}

/** What the main table leads past a full tunnel except our networks; a prefix once per link. */
export function listOutside(underlay: Underlay): OutsideRoute[] {
  const own = new Set(underlay.tunnels);
  const gateways = new Set(underlay.gateways.map(hostPrefix));
  const isOf4 = ({ prefix, link }: { readonly prefix: Prefix; readonly link: string }) =>
    familyOf(prefix) === 4 && lengthOf(prefix) > 0 && !own.has(link);
  const subnets = underlay.connected.filter(isOf4).map(
    ({ prefix, link }): OutsideRoute => ({
      ...{ prefix, link, gateway: null, protocol: null },
      isExpected: gateways.has(prefix) || isNarrow(prefix),
    }),
  );
  const known = new Set(subnets.map(({ prefix, link }) => `${prefix} ${link}`));
  const routes = underlay.routed.filter(
    (route) =>
      isOf4(route) &&
      route.protocol !== routeProtocol &&
      // Network configuration programs add the route to an interface's subnet themselves.
      !(known.has(`${route.prefix} ${route.link}`) && route.gateway === undefined),
  );
  const onLink = Map.groupBy(
    routes.filter(({ gateway }) => gateway === undefined),
    ({ link }) => link,
  );
  const crowded = new Set(
    [...onLink].flatMap(([link, each]) => (isCrowded(each.map(({ prefix }) => prefix)) ? [link] : [])),
  );
  const others = routes.map(({ prefix, link, gateway = null, protocol = null }): OutsideRoute => {
    const isNear = gateway === null && isNarrow(prefix) && !crowded.has(link);
    return { prefix, link, gateway, protocol, isExpected: gateways.has(prefix) || isNear };
  });
  return [...subnets, ...others];
}

/** True for a private prefix that is no wider than a /16. */
function isNarrow(prefix: Prefix): boolean {
  return isPrivate(prefix) && lengthOf(prefix) >= 16;
}

/** True if a link's routes together exceed a /16, or are too many rules for each packet. */
function isCrowded(prefixes: readonly Prefix[]): boolean {
  const narrow = prefixes.filter(isNarrow);
  return narrow.length > 256 || countAddresses(narrow) > 2 ** 16;
}

/**
 * Returns the prefixes that a strict tunnel leaves outside: the expected ones, the gateways, and
 * the ranges of the host's other networks, whose routes are in the main table too.
 */
export function strictlyOutside(underlay: Underlay): Prefix[] {
  const own = new Set(underlay.tunnels);
  const ours = underlay.connected.filter(({ link }) => own.has(link)).map(({ prefix }) => prefix);
  const made = underlay.routed.filter(({ protocol }) => protocol === routeProtocol).map(({ prefix }) => prefix);
  const expected = listOutside(underlay).filter(({ isExpected }) => isExpected);
  const all = [...expected.map(({ prefix }) => prefix), ...underlay.gateways.map(hostPrefix), ...ours, ...made];
  return [...new Set(all.filter((prefix) => familyOf(prefix) === 4 && lengthOf(prefix) > 0))].toSorted(comparePrefixes);
}

/**
 * Returns the routes that hollow out a full tunnel:
 * - routes of DHCP or router advertisements to public ranges of any size but a host route, and
 * - all unexpected routes, if together they take a /8 or more of public addresses.
 *
 * DHCP clients add host routes to DNS and time servers, and operators add single static routes.
 * Alone, these are no problem.
 */
export function findHollowing(routes: readonly OutsideRoute[]): ReadonlySet<OutsideRoute> {
  const open = routes.filter(({ prefix, isExpected }) => !isExpected && isPublic(prefix));
  const isWide = countAddresses(open.map(({ prefix }) => prefix)) >= 2 ** 24;
  const isAnnounced = ({ prefix, protocol }: OutsideRoute) =>
    (protocol === 'dhcp' || protocol === 'ra') && lengthOf(prefix) < 32;
  return new Set(open.filter((route) => isWide || isAnnounced(route)));
}

/** True for public addresses, unlike 169.254.169.254/32, to which clouds route by DHCP. */
export function isPublic(prefix: Prefix): boolean {
  return !isPrivate(prefix) && !specialRanges.some(([range]) => covers(range, prefix));
}

/** Counts distinct addresses: a sorted prefix lies in the last counted prefix, or after it. */
function countAddresses(prefixes: readonly Prefix[]): number {
  let [sum, last] = [0n, -1n];
  for (const prefix of prefixes.toSorted(comparePrefixes)) {
    const range = rangeOf(prefix);
    if (range.first <= last) continue;
    sum += range.last - range.first + 1n;
    last = range.last;
  }
  return Number(sum);
}
