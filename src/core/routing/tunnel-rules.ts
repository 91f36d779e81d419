import { routeProtocol, rulePriority, tunnelMark, tunnelTable } from '../host-state/marks.ts';
import { makeRule, type Rule, sameWords } from '../host-state/policy-rule.ts';
import { type Address, familyOf, hostPrefix, type Prefix } from '../net/cidr.ts';
import type { RouteConstraints } from './guard.ts';

/** Packets that WireGuard answered with its mark pass a strict reverse path filter (ip-sysctl.rst); as wg-quick sets it. */
export const markedSourceKey = 'net.ipv4.conf.all.src_valid_mark';

/**
 * The policy rules that send everything into a full tunnel but what would cut this host off. Two are those of wg-quick(8):
 * everything without the tunnel's mark goes to the tunnel's table, after whatever the main table has a route for other than
 * its default route. Ahead of them stay outside what this host answers at its own addresses (otherwise it would answer out of
 * another one), and what it sends to the control plane and to resolvers, without which a tunnel that fails could
 * not be mended.
 */
export function tunnelRules({ surroundings, api }: Pick<RouteConstraints, 'surroundings' | 'api'>): Rule[] {
  return [
    ...hosts(surroundings.addresses).map((from) => makeRule(rulePriority.source, { from, table: 'main' })),
    ...hosts(api).map((to) => makeRule(rulePriority.service, { to, table: 'main' })),
    ...hosts(surroundings.resolvers).map((to) => makeRule(rulePriority.resolver, { to, table: 'main' })),
    mainRule,
    tunnelRule,
  ];
}

/** The main table first, but for its default route. */
export const mainRule = makeRule(rulePriority.main, { table: 'main', suppress: 0 });

/** Into the tunnel, but for its own packets. */
export const tunnelRule = makeRule(rulePriority.tunnel, { not: true, fwmark: tunnelMark, table: tunnelTable });

/** IPv4 alone: IPv6 does not go through the tunnel. Packets to loopback addresses never ask these rules. */
function hosts(addresses: readonly Address[]): Prefix[] {
  const asked = addresses.filter((address) => familyOf(address) === 4 && !address.startsWith('127.'));
  return [...new Set(asked)].sort().map(hostPrefix);
}

/** What bears our mark, what leads into our table, and the rules that wg-quick made for it; the lowest priority comes first. */
export function findOurRules(rules: readonly Rule[]): Rule[] {
  const pairs = findPairs(rules).flat();
  return rules
    .filter((rule) => rule.protocol === routeProtocol || rule.table === tunnelTable || pairs.includes(rule))
    .toSorted((a, b) => b.priority - a.priority);
}

/** Wg-quick's two rules for our table, the one made first in front. */
export type Pair = readonly [tunnel: Rule, main: Rule];

/**
 * The pairs of rules that wg-quick made: it names neither priority nor protocol, and the kernel puts the second of them in front of
 * the first (fib_default_rule_pref in net/core/fib_rules.c).
 */
export function findPairs(rules: readonly Rule[]): Pair[] {
  const unmarked = rules.filter((rule) => rule.protocol !== routeProtocol);
  return unmarked
    .filter((rule) => sameWords(rule, tunnelRule))
    .flatMap((tunnel): Pair[] => {
      const main = unmarked.find((rule) => rule.priority === tunnel.priority - 1 && sameWords(rule, mainRule));
      return main === undefined ? [] : [[tunnel, main]];
    });
}
