import { type Address, familyOf, hostPrefix, lengthOf, type Prefix } from './cidr.ts';
import type { Ground } from './guard.ts';
import { routeProtocol, rulePriority, tunnelMark, tunnelTable } from './marks.ts';
import type { Rule } from './rule.ts';

/** Packets that WireGuard answered with its mark pass a strict reverse path filter (ip-sysctl.rst); as wg-quick sets it. */
export const markedSourceKey = 'net.ipv4.conf.all.src_valid_mark';

/** True for the default route and each half of it, which together are another spelling of it. */
export function isDefaultRoute(prefix: Prefix): boolean {
  return lengthOf(prefix) <= 1;
}

/** The table in which a route into the tunnel belongs: a default route in one of its own, so that the host keeps its own. */
export function routingTableOf(prefix: Prefix): string {
  return isDefaultRoute(prefix) ? tunnelTable : 'main';
}

/**
 * The policy rules that send everything into a full tunnel but what would cut this host off. Two are those of wg-quick(8):
 * everything without the tunnel's mark goes to the tunnel's table, after whatever the main table has a route for other than
 * its default route. Ahead of them stay outside what this host answers at its own addresses (otherwise it would answer out of
 * another one), and what it sends to the control plane and to resolvers, without which a tunnel that fails could
 * not be mended.
 */
export function tunnelRules({ surroundings, api }: Pick<Ground, 'surroundings' | 'api'>): Rule[] {
  return [
    ...hosts(surroundings.addresses).map((from) => rule(rulePriority.source, { from, table: 'main' })),
    ...hosts(api).map((to) => rule(rulePriority.service, { to, table: 'main' })),
    ...hosts(surroundings.resolvers).map((to) => rule(rulePriority.resolver, { to, table: 'main' })),
    mainRule,
    tunnelRule,
  ];
}

/** The main table first, but for its default route. */
export const mainRule = rule(rulePriority.main, { table: 'main', suppress: 0 });

/** Into the tunnel, but for its own packets. */
export const tunnelRule = rule(rulePriority.tunnel, { not: true, fwmark: tunnelMark, table: tunnelTable });

function rule(priority: number, given: Partial<Rule>): Rule {
  const any = { not: false, from: null, to: null, fwmark: null, table: null, suppress: null, more: [] };
  return { ...any, ...given, priority, protocol: routeProtocol };
}

/** IPv4 alone: IPv6 does not go through the tunnel. Packets to loopback addresses never ask these rules. */
function hosts(addresses: readonly Address[]): Prefix[] {
  const asked = addresses.filter((address) => familyOf(address) === 4 && !address.startsWith('127.'));
  return [...new Set(asked)].sort().map(hostPrefix);
}
