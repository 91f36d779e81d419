import type { Prefix } from '../net/cidr.ts';
import { kernelProtocol, mainPriority, routeProtocol } from './marks.ts';

/** An IPv4 policy rule (ip-rule(8)): where the packets that it matches are routed. */
export interface Rule {
  /** Rules are evaluated from 0 upwards, until a rule leads to a route. */
  readonly priority: number;
  /** Inverts the match. */
  readonly not: boolean;
  readonly from: Prefix | null;
  readonly to: Prefix | null;
  /** The mark of a packet, compared within `mask`. */
  readonly fwmark: number | null;
  /** The bits of the mark that are compared; null for the whole mark. */
  readonly mask: number | null;
  /** `main` or a number; null for a rule that leads to no table. */
  readonly table: string | null;
  /**
   * The next rule's priority (`goto`). Without a rule of that priority, the kernel skips this rule
   * (fib_rules_lookup in net/core/fib_rules.c). With neither this nor a table, it is a `nop`.
   */
  readonly goto: number | null;
  /** Routes with this prefix length or a shorter one are ignored (`suppress_prefixlength`). */
  readonly suppress: number | null;
  /** The program that added it, as a number or as the name of a protocol in iproute2. */
  readonly protocol: string;
  /** Names of further fields, which no rule of ours has. */
  readonly more: readonly string[];
}

/** Creates a rule of ours that matches the given fields, or everything without them. */
export function makeRule(priority: number, given: Partial<Rule>): Rule {
  const all = { not: false, from: null, to: null, fwmark: null, mask: null };
  const nop = { table: null, goto: null, suppress: null };
  return { ...all, ...nop, more: [], ...given, priority, protocol: routeProtocol };
}

/** `local`, `main` and `default` (fib_default_rules_init in net/ipv4/fib_rules.c). */
const kernelRules = [
  makeRule(0, { table: '255' }),
  makeRule(mainPriority, { table: 'main' }),
  makeRule(mainPriority + 1, { table: '253' }),
];

/** True for a rule of the kernel, even if another program deleted and added it again. */
export function isKernelRule(rule: Rule): boolean {
  return rule.protocol === kernelProtocol || kernelRules.some((each) => sameRule(each, rule));
}

/** True for a rule that does nothing, and is only the target of other rules. */
export function isNop({ table, goto, more }: Rule): boolean {
  return table === null && goto === null && more.length === 0;
}

/** True if two rules route the same packets alike, with any priority and protocol. */
export function sameWords(one: Rule, other: Rule): boolean {
  return formatRule(one) === formatRule(other) && one.more.length === 0 && other.more.length === 0;
}

/** True if the rules are interchangeable; the kernel does not keep both. */
export function sameRule(one: Rule, other: Rule): boolean {
  return one.priority === other.priority && sameWords(one, other);
}

/** Formats a rule as `ip rule` prints and accepts it, without priority and protocol. */
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
