import { outsideMark, routeProtocol, rulePriority, tunnelMark, tunnelTable } from '../host-state/marks.ts';
import { isNop, makeRule, type Rule, sameRule, sameWords } from '../host-state/policy-rule.ts';
import { type Address, familyOf, hostPrefix, type Prefix } from '../net/cidr.ts';
import type { RouteConstraints } from './guard.ts';

/** Replies with WireGuard's mark pass a strict `rp_filter` then (ip-sysctl.rst), as in wg-quick. */
export const markedSourceKey = 'net.ipv4.conf.all.src_valid_mark';

/**
 * The policy rules that send everything into a full tunnel except what would cut the host off. Two
 * are those of wg-quick(8): packets without the tunnel's mark use the tunnel's table, after any
 * route of the main table other than its default route.
 *
 * Before them, rules send past the tunnel:
 * - replies from the host's own addresses,
 * - packets of connections that began outside (see {@link returnPathRules}),
 * - packets to the control plane and to resolvers, without which a failing tunnel could not be
 *   repaired.
 *
 * These packets continue at a `nop` behind the rule into the tunnel, so that the host's own rules
 * choose the table. The kernel skips a `goto` without a target: the `nop` is added first and
 * removed last.
 *
 * @param marksOutside true if our packet rules mark connections that began outside
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

/** Sends past the tunnel the packets that our packet rules mark. */
const outsideRule = makeRule(rulePriority.source, { fwmark: outsideMark, mask: outsideMark, goto: rulePriority.end });

/** Uses the main table first, without its default route. */
export const mainRule = makeRule(rulePriority.main, { table: 'main', suppress: 0 });

/** Sends packets into the tunnel, except the tunnel's own. */
export const tunnelRule = makeRule(rulePriority.tunnel, { not: true, fwmark: tunnelMark, table: tunnelTable });

/** Exempted packets for which the host has no route, as to a resolver, enter the tunnel. */
const lastRule = makeRule(rulePriority.last, { not: true, fwmark: tunnelMark, table: tunnelTable });

/** Only IPv4: IPv6 stays outside the tunnel. Loopback packets never reach these rules. */
function hosts(addresses: readonly Address[]): Prefix[] {
  const asked = addresses.filter((address) => familyOf(address) === 4 && !address.startsWith('127.'));
  return [...new Set(asked)].sort().map(hostPrefix);
}

/** Puts wg-quick's pair in place of two rules. Packets past the tunnel continue behind it. */
export function rulesBehind([tunnel]: RulePair, rules: readonly Rule[]): Rule[] {
  const end = tunnel.priority + 1;
  return rules
    .filter((rule) => !sameRule(rule, mainRule) && !sameRule(rule, tunnelRule))
    .map((rule) => (isNop(rule) ? { ...rule, priority: end } : rule.goto === null ? rule : { ...rule, goto: end }));
}

/**
 * Returns the rules with our protocol number or into our table, and wg-quick's pair, in the order
 * of removal: the highest priority number first, and targets of others last.
 */
export function findOurRules(rules: readonly Rule[]): Rule[] {
  const pairs = findPairs(rules).flat();
  return rules
    .filter((rule) => rule.protocol === routeProtocol || rule.table === tunnelTable || pairs.includes(rule))
    .toSorted((a, b) => Number(isNop(a)) - Number(isNop(b)) || b.priority - a.priority);
}

/** wg-quick's two rules for our table, the one that was added first in front. */
export type RulePair = readonly [tunnel: Rule, main: Rule];

/**
 * Finds wg-quick's pairs. wg-quick names neither priority nor protocol, and the kernel puts the
 * second rule in front of the first (fib_default_rule_pref in net/core/fib_rules.c).
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
