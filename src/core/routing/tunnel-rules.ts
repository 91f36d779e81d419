import { outsideMark, routeProtocol, rulePriority, tunnelMark, tunnelTable } from '../host-state/marks.ts';
import { isNop, makeRule, type Rule, sameRule, sameWords } from '../host-state/policy-rule.ts';
import { type Address, familyOf, hostPrefix, type Prefix } from '../net/cidr.ts';
import type { RouteConstraints } from './guard.ts';

/** Packets that WireGuard answered with its mark pass a strict reverse path filter (ip-sysctl.rst); as wg-quick sets it. */
export const markedSourceKey = 'net.ipv4.conf.all.src_valid_mark';

/**
 * The policy rules that send everything into a full tunnel but what would cut this host off. Two are those of wg-quick(8):
 * everything without the tunnel's mark goes to the tunnel's table, after whatever the main table has a route for other than
 * its default route.
 *
 * Ahead of them, rules send past the tunnel: answers from this host's own addresses, packets of connections that began outside
 * (see {@link returnPathRules}), and packets to the control plane and to resolvers, without which a tunnel that fails could not
 * be mended. They continue at a `nop` behind the rule into the tunnel, so that the rules of the host choose the table. Without a
 * target a `goto` is skipped: the `nop` is added first and removed last.
 *
 * @param marksOutside whether packet rules of ours mark connections that began outside
 */
export function tunnelRules(
  { underlay, api }: Pick<RouteConstraints, 'underlay' | 'api'>,
  marksOutside: boolean,
): Rule[] {
  return [
    makeRule(rulePriority.end, {}),
    ...(marksOutside ? [outsideRule] : []),
    ...hosts(underlay.addresses).map((from) => makeRule(rulePriority.source, { from, goto: rulePriority.end })),
    ...hosts(api).map((to) => makeRule(rulePriority.service, { to, goto: rulePriority.end })),
    ...hosts(underlay.resolvers).map((to) => makeRule(rulePriority.resolver, { to, goto: rulePriority.end })),
    mainRule,
    tunnelRule,
    lastRule,
  ];
}

/** Past the tunnel: what our packet rules mark. */
const outsideRule = makeRule(rulePriority.source, { fwmark: outsideMark, mask: outsideMark, goto: rulePriority.end });

/** The main table first, but for its default route. */
export const mainRule = makeRule(rulePriority.main, { table: 'main', suppress: 0 });

/** Into the tunnel, but for its own packets. */
export const tunnelRule = makeRule(rulePriority.tunnel, { not: true, fwmark: tunnelMark, table: tunnelTable });

/** Into the tunnel after all: what goes past it on a host that has no route there, as to a resolver without a default route. */
const lastRule = makeRule(rulePriority.last, { not: true, fwmark: tunnelMark, table: tunnelTable });

/** IPv4 alone: IPv6 does not go through the tunnel. Packets to loopback addresses never ask these rules. */
function hosts(addresses: readonly Address[]): Prefix[] {
  const asked = addresses.filter((address) => familyOf(address) === 4 && !address.startsWith('127.'));
  return [...new Set(asked)].sort().map(hostPrefix);
}

/** The same rules with wg-quick's pair in the place of two of them: what goes past the tunnel continues behind it. */
export function rulesBehind([tunnel]: RulePair, rules: readonly Rule[]): Rule[] {
  const end = tunnel.priority + 1;
  return rules
    .filter((rule) => !sameRule(rule, mainRule) && !sameRule(rule, tunnelRule))
    .map((rule) => (isNop(rule) ? { ...rule, priority: end } : rule.goto === null ? rule : { ...rule, goto: end }));
}

/**
 * What bears our mark, what leads into our table, and the rules that wg-quick made for it; in the order in which they go: the highest
 * priority comes first, and targets of others last.
 */
export function findOurRules(rules: readonly Rule[]): Rule[] {
  const pairs = findPairs(rules).flat();
  return rules
    .filter((rule) => rule.protocol === routeProtocol || rule.table === tunnelTable || pairs.includes(rule))
    .toSorted((a, b) => Number(isNop(a)) - Number(isNop(b)) || b.priority - a.priority);
}

/** Wg-quick's two rules for our table, the one made first in front. */
export type RulePair = readonly [tunnel: Rule, main: Rule];

/**
 * The pairs of rules that wg-quick made: it names neither priority nor protocol, and the kernel puts the second of them in front of
 * the first (fib_default_rule_pref in net/core/fib_rules.c).
 */
export function findPairs(rules: readonly Rule[]): RulePair[] {
  const unmarked = rules.filter((rule) => rule.protocol !== routeProtocol);
  return unmarked
    .filter((rule) => sameWords(rule, tunnelRule))
    .flatMap((tunnel): RulePair[] => {
      const main = unmarked.find((rule) => rule.priority === tunnel.priority - 1 && sameWords(rule, mainRule));
      return main === undefined ? [] : [[tunnel, main]];
    });
}
