import type { Prefix } from '../net/cidr.ts';
import { kernelProtocol, mainPriority, routeProtocol } from './marks.ts';

/** An IPv4 policy rule (ip-rule(8)): where the packets that it matches are routed. */
export interface Rule {
  /** Rules are asked from 0 upwards, until one leads to a route. */
  readonly priority: number;
  /** Turns the match around. */
  readonly not: boolean;
  readonly from: Prefix | null;
  readonly to: Prefix | null;
  /** The mark that a packet bears, compared within `mask`. */
  readonly fwmark: number | null;
  /** The bits of the mark that are compared; null for the whole mark. */
  readonly mask: number | null;
  /** `main` or a number; null for a rule that leads to no table. */
  readonly table: string | null;
  /**
   * The priority of the rule that is asked next (`goto`). While no rule has that priority, the kernel skips the rule
   * (fib_rules_lookup in net/core/fib_rules.c). A rule with neither this nor a table is a `nop`.
   */
  readonly goto: number | null;
  /** Routes as short as this or shorter are passed over (`suppress_prefixlength`). */
  readonly suppress: number | null;
  /** Who made it, as a number or as the name of a protocol that iproute2 knows. */
  readonly protocol: string;
  /** Names of what else it says, which no rule of ours does. */
  readonly more: readonly string[];
}

/** A rule of ours that matches what is given, and everything without that. */
export function makeRule(priority: number, given: Partial<Rule>): Rule {
  const all = { not: false, from: null, to: null, fwmark: null, mask: null };
  const nop = { table: null, goto: null, suppress: null };
  return { ...all, ...nop, more: [], ...given, priority, protocol: routeProtocol };
}

/** The tables `local`, `main` and `default`, with which the kernel begins (fib_default_rules_init in net/ipv4/fib_rules.c). */
const kernelRules = [
  makeRule(0, { table: '255' }),
  makeRule(mainPriority, { table: 'main' }),
  makeRule(mainPriority + 1, { table: '253' }),
];

/** True for a rule of the kernel, also for one that another program deleted and added again. */
export function isKernelRule(rule: Rule): boolean {
  return rule.protocol === kernelProtocol || kernelRules.some((each) => sameRule(each, rule));
}

/** True for a rule that does nothing, and is there as the target of others. */
export function isNop({ table, goto, more }: Rule): boolean {
  return table === null && goto === null && more.length === 0;
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
export function formatRule(rule: Rule): string {
  const { not, from, to, fwmark, mask, table, goto, suppress } = rule;
  return [
    ...(not ? ['not'] : []),
    `from ${from ?? 'all'}`,
    ...(to === null ? [] : [`to ${to}`]),
    ...(fwmark === null ? [] : [`fwmark ${[fwmark, ...(mask === null ? [] : [mask])].map(toHex).join('/')}`]),
    ...(table === null ? [] : [`lookup ${table}`]),
    ...(goto === null ? [] : [`goto ${goto}`]),
    ...(isNop(rule) ? ['nop'] : []),
    ...(suppress === null ? [] : [`suppress_prefixlength ${suppress}`]),
  ].join(' ');
}

function toHex(value: number): string {
  return `0x${value.toString(16)}`;
}
