import { type Ipv6Exception, ownSubnet } from '../forward/ipv6-outside.ts';
import type { Underlay } from '../host-state/actual.ts';
import type { Address } from '../net/cidr.ts';
import { findHollowing, listOutside } from '../routing/outside.ts';
import {
  comparePublicFirst,
  ipv6Open,
  listPublicResolvers,
  nameOutside,
  takesPublic,
} from '../routing/outside-report.ts';
import { isPrivate } from '../routing/public-prefixes.ts';
import { areStrict } from '../routing/strict-rules.ts';
import type { MappedNetwork } from './check-network.ts';
import { type Finding, noteFinding, okFinding, problemFinding } from './finding.ts';

/** Checks what leads past a full tunnel; empty without one. */
export function checkOutside({ enabled, desired, actual }: MappedNetwork): Finding[] {
  const { underlay } = actual;
  if (!enabled || desired.rules.length === 0) return [];
  return [...checkRoutes(desired, underlay), ...checkIpv6(desired, underlay)];
}

function checkIpv6({ link, ipv6 }: MappedNetwork['desired'], { uplinks6 = [] }: Underlay): Finding[] {
  if (ipv6 === null || !ipv6.isThere) return [];
  const checked = `IPv6 outside the full tunnel ${link}`;
  if (ipv6.exceptions !== null) {
    const { prefixes, links } = ipv6.exceptions;
    const subnets = prefixes.filter((each) => each.why === ownSubnet);
    const but = subnets.length === 0 ? '' : ` except for ${describeSubnets(subnets)}`;
    const notes = findExtraSubnets(subnets, links, uplinks6).map((each) =>
      noteFinding(
        'network',
        checked,
        `is rejected except for public subnets, which any neighbour can announce: ${describeSubnets(each)}`,
        `cpn set ${link} --strict-tunnel, unless this host belongs to all of them`,
      ),
    );
    return notes.length > 0 ? notes : [okFinding('network', checked, `is rejected${but}`)];
  }
  if (ipv6.isAllowed) return [noteFinding('network', checked, 'is let out', `cpn set ${link} --no-allow-ipv6-outside`)];
  return [problemFinding('network', checked, ipv6Open, 'install nftables')];
}

/**
 * Returns the public subnets of each interface with more of them than expected: one with a default
 * route, else none. A router advertisement adds a subnet, whose addresses bypass the tunnel.
 * Nothing goes outside by `inner` interfaces.
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

function checkRoutes({ link, rules, ipv6 }: MappedNetwork['desired'], underlay: Underlay): Finding[] {
  const checked = `routes that lead past the full tunnel ${link}`;
  const unexpected = listOutside(underlay).filter(({ isExpected }) => !isExpected);
  if (areStrict(rules)) {
    const lose = unexpected.length === 0 ? '' : `; --strict-tunnel overrides ${unexpected.length} others`;
    const found = `only those to local private subnets${lose}`;
    return [okFinding('network', checked, found), ...noteResolvers(link, listPublicResolvers({ rules, ipv6 }))];
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
        ? problemFinding('network', checked, `${nameOutside(route)} ${takesPublic}`, remedy)
        : noteFinding('network', checked, nameOutside(route), `${remedy}, unless this is intended`),
    );
  const hidden = sorted.length - shown.length;
  if (hidden > 0) shown.push(noteFinding('network', checked, `there are ${hidden} more`, 'ip route show table main'));
  return shown.length > 0 ? shown : [okFinding('network', checked, 'only those to local private subnets')];
}

/** Public resolvers from DHCP bypass a strict tunnel: queries must work while the tunnel fails. */
function noteResolvers(link: string, resolvers: readonly Address[]): Finding[] {
  if (resolvers.length === 0) return [];
  const checked = `resolvers outside the strict tunnel ${link}`;
  const remedy = 'none, if you trust them; otherwise name resolvers in /etc/resolv.conf that the tunnel reaches';
  return [noteFinding('network', checked, `all traffic to ${resolvers.join(', ')} goes outside`, remedy)];
}

const mostShown = 10;
