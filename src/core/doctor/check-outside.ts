import type { Actual } from '../host-state/actual.ts';
import type { Rule } from '../host-state/policy-rule.ts';
import { findHollowing, listOutside } from '../routing/outside.ts';
import { nameOutside } from '../routing/outside-report.ts';
import { areStrict } from '../routing/strict-rules.ts';
import type { ExaminedNetwork } from './check-network.ts';
import { type Finding, noteFinding, okFinding, problemFinding } from './finding.ts';

/** Judges what leads past a full tunnel; nothing without one. */
export function checkOutside({ enabled, desired, actual }: ExaminedNetwork): Finding[] {
  const { link, rules } = desired;
  if (!enabled || rules.length === 0) return [];
  return [...checkRoutes(link, rules, actual), ...checkIpv6(desired)];
}

function checkIpv6({ link, ipv6 }: ExaminedNetwork['desired']): Finding[] {
  if (ipv6 === null || !ipv6.isThere) return [];
  const looked = `IPv6 outside the full tunnel ${link}`;
  if (ipv6.exceptions !== null) return [okFinding('network', looked, 'is rejected')];
  if (ipv6.isAllowed) return [noteFinding('network', looked, 'is let out', `cpn set ${link} --no-allow-ipv6-outside`)];
  return [problemFinding('network', looked, 'is not rejected: nft cannot be used here', 'install nftables')];
}

function checkRoutes(link: string, rules: readonly Rule[], actual: Actual): Finding[] {
  const looked = `routes that lead past the full tunnel ${link}`;
  const { surroundings } = actual;
  const unexpected = listOutside(surroundings).filter(({ isExpected }) => !isExpected);
  if (areStrict(rules)) {
    const lose = unexpected.length === 0 ? '' : `; ${unexpected.length} others lose to it, as --strict-tunnel says`;
    return [okFinding('network', looked, `those to local private subnets alone${lose}`)];
  }
  const hollowing = findHollowing(unexpected);
  const remedy = `cpn set ${link} --strict-tunnel`;
  const shown = unexpected
    .toSorted((a, b) => Number(hollowing.has(b)) - Number(hollowing.has(a)))
    .slice(0, mostShown)
    .map((route) =>
      hollowing.has(route)
        ? problemFinding('network', looked, `${nameOutside(route)} takes public addresses from it`, remedy)
        : noteFinding('network', looked, nameOutside(route), `${remedy}, unless it is meant to be`),
    );
  return shown.length > 0 ? shown : [okFinding('network', looked, 'those to local private subnets alone')];
}

const mostShown = 10;
