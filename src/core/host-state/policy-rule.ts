import type { Prefix } from '../net/cidr.ts';
import { routeProtocol } from './marks.ts';

/** An IPv4 policy rule (ip-rule(8)): where the packets that it matches are routed. */
export interface Rule {
  /** Rules are asked from 0 upwards, until one leads to a route. */
  readonly priority: number;
  /** Turns the match around. */
  readonly not: boolean;
  readonly from: Prefix | null;
  readonly to: Prefix | null;
  /** The mark that a packet bears, compared as a whole. */
  readonly fwmark: number | null;
  /** `main` or a number; null for a rule that leads to no table. */
  readonly table: string | null;
  /** Routes as short as this or shorter are passed over (`suppress_prefixlength`). */
  readonly suppress: number | null;
  /** Who made it, as a number or as the name of a protocol that iproute2 knows. */
  readonly protocol: string;
  /** Names of what else it says, which no rule of ours does. */
  readonly more: readonly string[];
}

/** A rule of ours that matches what is given, and everything without that. */
export function makeRule(priority: number, given: Partial<Rule>): Rule {
  const any = { not: false, from: null, to: null, fwmark: null, table: null, suppress: null, more: [] };
  return { ...any, ...given, priority, protocol: routeProtocol };
}

/** True when two rules route the same packets alike, at any priority and of any program. */
export function sameWords(one: Rule, other: Rule): boolean {
  return formatRule(one) === formatRule(other) && one.more.length === 0 && other.more.length === 0;
}

/** True when one stands in the place of the other; the kernel does not hold both. */
export function sameRule(one: Rule, other: Rule): boolean {
  return one.priority === other.priority && sameWords(one, other);
}

/** A rule in the words in which `ip rule` prints it and takes it, without priority and protocol. */
export function formatRule({ not, from, to, fwmark, table, suppress }: Rule): string {
  return [
    ...(not ? ['not'] : []),
    `from ${from ?? 'all'}`,
    ...(to === null ? [] : [`to ${to}`]),
    ...(fwmark === null ? [] : [`fwmark 0x${fwmark.toString(16)}`]),
    ...(table === null ? [] : [`lookup ${table}`]),
    ...(suppress === null ? [] : [`suppress_prefixlength ${suppress}`]),
  ].join(' ');
}
