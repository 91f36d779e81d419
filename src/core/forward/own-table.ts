import type { Actual } from '../host-state/actual.ts';
import { sameMembers } from '../util/same-data.ts';
import { commentOf, type Firewall } from './packet-rule.ts';

/** The name of our table, in the family `inet`. */
export function tableOf(link: string): string {
  return `cpn_${link}`;
}

/**
 * Placeholders for rules: of a table that cannot be read, and of a host on which `nft` is missing
 * or does not work.
 */
export const unreadable = '(cannot be read)';
export const withoutTool = '(nft is not there)';

/** True if a table of ours exists, or may exist. */
export function hasTable({ firewall }: Pick<Actual, 'firewall'>): boolean {
  return firewall !== null && !firewall.includes(withoutTool);
}

/**
 * True if rules for forwarded packets are in place, or may be. A table without any only limits or
 * marks arriving packets, or limits IPv6.
 */
export function boundsForwarding({ firewall }: Pick<Actual, 'firewall'>): boolean {
  return (
    firewall?.some((mark) => !/^(arriving|probed|redirected|returning|answering|outgoing|passing) /.test(mark)) ?? false
  );
}

/** True if rules that reject IPv6 outside a full tunnel are in place, or may be. */
export function rejectsIpv6({ firewall }: Pick<Actual, 'firewall'>): boolean {
  return firewall?.some((mark) => mark.startsWith('outgoing ') || mark === unreadable) ?? false;
}

/** True if exactly the rules of a firewall are in place. */
export function isLoaded(firewall: Firewall, { firewall: marks }: Pick<Actual, 'firewall'>): boolean {
  return marks !== null && sameMembers(firewallMarks(firewall), marks);
}

/**
 * Returns what a host shows of a firewall that is in place, sorted: each rule's `chain comment`.
 */
export function firewallMarks({ rules }: Firewall): readonly string[] {
  return rules.map((rule) => `${rule.chain} ${commentOf(rule)}`).sort();
}
