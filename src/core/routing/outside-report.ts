import type { Underlay } from '../host-state/actual.ts';
import { rulePriority } from '../host-state/marks.ts';
import type { Rule } from '../host-state/policy-rule.ts';
import { type Address, addressOf, covers, hostPrefix, lengthOf, type Prefix, restorePrefix } from '../net/cidr.ts';
import { nameService, resolver } from './kept-outside.ts';
import { findHollowing, isPublic, listOutside, type OutsideRoute } from './outside.ts';
import { areStrict, usualPriority } from './strict-rules.ts';

/** A prefix that a host with a full tunnel reaches outside the tunnel. */
export interface OutsideEntry {
  readonly prefix: Prefix;
  /** Null if the host's own routes decide. */
  readonly link: string | null;
  readonly gateway: Address | null;
  readonly why: string;
  /** Why the tunnel does not carry what it should; null if it does. */
  readonly problem: string | null;
}

/** What a host reaches outside a full tunnel. */
export interface OutsideReport {
  /** Entries with a problem first, then public addresses, then the widest prefixes. */
  readonly entries: readonly OutsideEntry[];
  /** The number of entries that were left out. */
  readonly omitted: number;
}

/** A host with a full internet routing table has a million entries. */
const mostListed = 100;

export const noOutside: OutsideReport = { entries: [], omitted: 0 };

/**
 * Reports what a host reaches outside the full tunnel `link`; empty without one. `tunnel` has its
 * policy rules and treatment of IPv6. `isProxied`: a proxy leads to the control plane.
 */
export function reportOutside(
  link: string,
  { rules, ipv6 }: FullTunnel,
  underlay: Underlay,
  isProxied = false,
): OutsideReport {
  if (rules.length === 0) return noOutside;
  const routes = routesOutside(rules, underlay);
  const hollowing = findHollowing(routes);
  const named = rules.flatMap((rule) => describeRule(rule, isProxied) ?? []);
  const isNamed = new Set([...named.map(({ prefix }) => prefix), ...underlay.gateways.map(hostPrefix)]);
  const entries = routes.map((route): OutsideEntry => {
    const { prefix, gateway } = route;
    const isProblem = hollowing.has(route) && !isNamed.has(prefix);
    const problem = isProblem ? `it ${takesPublic}; ${remedyOf(link)}` : null;
    return { prefix, link: route.link, gateway, why: describeRoute(route, underlay), problem };
  });
  const sorted = [...entries, ...named, ...describeIpv6(ipv6)].toSorted(
    (a, b) =>
      Number(a.problem === null) - Number(b.problem === null) ||
      comparePublicFirst(a.prefix, b.prefix) ||
      lengthOf(a.prefix) - lengthOf(b.prefix),
  );
  return { entries: sorted.slice(0, mostListed), omitted: Math.max(0, sorted.length - mostListed) };
}

/** The properties of a full tunnel that this report uses. */
export interface FullTunnel {
  readonly rules: readonly Rule[];
  readonly ipv6: {
    readonly exceptions: { readonly prefixes: readonly Omit<OutsideEntry, 'problem'>[] } | null;
    readonly isAllowed: boolean;
    readonly isThere: boolean;
  } | null;
}

function describeIpv6(ipv6: FullTunnel['ipv6']): OutsideEntry[] {
  if (ipv6 === null || !ipv6.isThere) return [];
  if (ipv6.exceptions !== null) return ipv6.exceptions.prefixes.map((each) => ({ ...each, problem: null }));
  const all = { prefix: allIpv6, link: null, gateway: null };
  if (ipv6.isAllowed) return [{ ...all, why: '--allow-ipv6-outside', problem: null }];
  return [{ ...all, why: 'a full tunnel carries only IPv4', problem: `it ${ipv6Open}; install nftables` }];
}

const allIpv6 = restorePrefix('::/0');
/** The problem of a route that leads public addresses past a full tunnel. */
export const takesPublic = 'takes public addresses from the full tunnel';
/** The problem of IPv6 outside a full tunnel, on a host without packet rules. */
export const ipv6Open = 'cannot be rejected: nft is missing or cannot be used';

/** The routes that lead past a full tunnel with these rules. */
function routesOutside(rules: readonly Rule[], underlay: Underlay): OutsideRoute[] {
  const isStrict = areStrict(rules);
  return listOutside(underlay).filter(({ isExpected }) => !isStrict || isExpected);
}

/** Returns the narrowest route that leads an address past a full tunnel, or null. */
export function findOutsideRoute(address: Address, rules: readonly Rule[], underlay: Underlay): OutsideRoute | null {
  const routes = routesOutside(rules, underlay).filter(({ prefix }) => covers(prefix, address));
  return routes.toSorted((a, b) => lengthOf(b.prefix) - lengthOf(a.prefix))[0] ?? null;
}

/** Public ranges first: a DHCP server could hide a public range behind many private ranges. */
export function comparePublicFirst(a: Prefix, b: Prefix): number {
  return Number(isPublic(b)) - Number(isPublic(a));
}

/** The command that sends the addresses of such a route into the tunnel. */
export function remedyOf(link: string): string {
  return `"cpn set ${link} --strict-tunnel" sends these addresses into the tunnel`;
}

/** Returns, for example, `0.0.0.0/1 by 192.0.2.66 on eth0 (dhcp)`. */
export function nameOutside({ prefix, link, gateway, protocol }: OutsideRoute): string {
  const by = gateway === null ? `on ${link}` : `by ${gateway} on ${link}`;
  return `${prefix} ${by}${protocol === null ? '' : ` (${protocol})`}`;
}

function describeRoute({ prefix, gateway, protocol }: OutsideRoute, { gateways }: Underlay): string {
  if (gateways.some((each) => hostPrefix(each) === prefix)) return 'the default gateway';
  if (protocol === null) return 'this host is in this subnet';
  return `${gateway === null ? 'a route on the link' : 'a route of this host'} (${protocol})`;
}

/** Returns public resolvers outside a full tunnel. A DHCP server chooses them. */
export function listPublicResolvers({ rules, ipv6 }: FullTunnel): Address[] {
  const all = [...rules.flatMap((rule) => describeRule(rule) ?? []), ...(ipv6?.exceptions?.prefixes ?? [])];
  return all.filter(({ prefix, why }) => why === resolver && isPublic(prefix)).map(({ prefix }) => addressOf(prefix));
}

function describeRule({ priority, to }: Rule, isProxied = false): OutsideEntry | null {
  const place = usualPriority(priority);
  const why = place === rulePriority.service ? nameService(isProxied) : resolver;
  if (to === null || (place !== rulePriority.service && place !== rulePriority.resolver)) return null;
  return { prefix: hostPrefix(addressOf(to)), link: null, gateway: null, why, problem: null };
}
