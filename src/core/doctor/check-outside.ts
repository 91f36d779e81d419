import { type Ipv6Exception, ownSubnet } from '../forward/ipv6-outside.ts';
import type { Underlay } from '../host-state/actual.ts';
import type { Address } from '../net/cidr.ts';
import { findHollowing, listOutside } from '../routing/outside.ts';
import { comparePublicFirst, listPublicResolvers, nameOutside } from '../routing/outside-report.ts';
import { isPrivate } from '../routing/public-prefixes.ts';
import { areStrict } from '../routing/strict-rules.ts';
import type { ExaminedNetwork } from './check-network.ts';
import { type Finding, noteFinding, okFinding, problemFinding } from './finding.ts';

/** Judges what leads past a full tunnel; nothing without one. */
export function checkOutside({ enabled, desired, actual }: ExaminedNetwork): Finding[] {
  const { surroundings } = actual;
  if (!enabled || desired.rules.length === 0) return [];
  return [...checkRoutes(desired, surroundings), ...checkIpv6(desired, surroundings)];
}

function checkIpv6({ link, ipv6 }: ExaminedNetwork['desired'], { uplinks6 = [] }: Underlay): Finding[] {
  if (ipv6 === null || !ipv6.isThere) return [];
  const looked = `IPv6 outside the full tunnel ${link}`;
  if (ipv6.exceptions !== null) {
    const { prefixes, links } = ipv6.exceptions;
    const subnets = prefixes.filter((each) => each.why === ownSubnet);
    const but = subnets.length === 0 ? '' : `, but for ${describeSubnets(subnets)}`;
    const notes = findExtraSubnets(subnets, links, uplinks6).map((each) =>
      noteFinding(
        'network',
        looked,
        `is rejected, but for public subnets, which any neighbour can announce: ${describeSubnets(each)}`,
        `cpn set ${link} --strict-tunnel, unless this host belongs to all of them`,
      ),
    );
    return notes.length > 0 ? notes : [okFinding('network', looked, `is rejected${but}`)];
  }
  if (ipv6.isAllowed) return [noteFinding('network', looked, 'is let out', `cpn set ${link} --no-allow-ipv6-outside`)];
  return [problemFinding('network', looked, 'is not rejected: nft cannot be used here', 'install nftables')];
}

/**
 * The public subnets of each interface with more of them than a plain network gives it: one where it leads to a default router, none
 * elsewhere. A router advertisement adds a subnet, and so takes its addresses past the tunnel.
 *
 * @param inner interfaces by which nothing goes outside
 */
function findExtraSubnets(
  subnets: readonly Ipv6Exception[],
  inner: readonly string[],
  uplinks6: readonly string[],
): readonly (readonly Ipv6Exception[])[] {
  const open = subnets.filter(({ prefix, link }) => !isPrivate(prefix) && !inner.includes(link ?? ''));
  return [...Map.groupBy(open, ({ link }) => link ?? '')]
    .filter(([link, each]) => each.length > (uplinks6.includes(link) ? 1 : 0))
    .map(([, each]) => each);
}

function describeSubnets(subnets: readonly Ipv6Exception[]): string {
  const shown = subnets.slice(0, mostShown).map(({ prefix, link }) => `${prefix} on ${link}`);
  const more = subnets.length > mostShown ? ` and ${subnets.length - mostShown} more` : '';
  return `${shown.join(', ')}${more}`;
}

function checkRoutes({ link, rules, ipv6 }: ExaminedNetwork['desired'], surroundings: Underlay): Finding[] {
  const looked = `routes that lead past the full tunnel ${link}`;
  const unexpected = listOutside(surroundings).filter(({ isExpected }) => !isExpected);
  if (areStrict(rules)) {
    const lose = unexpected.length === 0 ? '' : `; ${unexpected.length} others lose to it, as --strict-tunnel says`;
    const found = `those to local private subnets alone${lose}`;
    return [okFinding('network', looked, found), ...noteResolvers(link, listPublicResolvers({ rules, ipv6 }))];
  }
  const hollowing = findHollowing(unexpected);
  const remedy = `cpn set ${link} --strict-tunnel`;
  const sorted = unexpected.toSorted(
    (a, b) => Number(hollowing.has(b)) - Number(hollowing.has(a)) || comparePublicFirst(a.prefix, b.prefix),
  );
  const shown = sorted
    .slice(0, mostShown)
    .map((route) =>
      hollowing.has(route)
        ? problemFinding('network', looked, `${nameOutside(route)} takes public addresses from it`, remedy)
        : noteFinding('network', looked, nameOutside(route), `${remedy}, unless it is meant to be`),
    );
  const hidden = sorted.length - shown.length;
  if (hidden > 0) shown.push(noteFinding('network', looked, `there are ${hidden} more`, 'ip route show table main'));
  return shown.length > 0 ? shown : [okFinding('network', looked, 'those to local private subnets alone')];
}

/** A DHCP server that names public resolvers takes these addresses past a strict tunnel, as queries must work while the tunnel fails. */
function noteResolvers(link: string, resolvers: readonly Address[]): Finding[] {
  if (resolvers.length === 0) return [];
  const looked = `resolvers outside the strict tunnel ${link}`;
  const remedy = 'none, if you trust them; else set resolvers in /etc/resolv.conf that are reached through the tunnel';
  return [noteFinding('network', looked, `all traffic to ${resolvers.join(', ')} goes outside`, remedy)];
}

const mostShown = 10;
