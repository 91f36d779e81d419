import type { Actual } from '../host-state/actual.ts';
import { sameMembers } from '../util/same-data.ts';
import { timeoutsOf } from './deadline-rules.ts';
import { accessComments, commentOf, type Firewall } from './packet-rule.ts';

/** The name of our table, in the family `inet`. */
export function tableOf(link: string): string {
  return `cpn_${link}`;
}

/** Placeholders: for rules that cannot be read, and for a host without a working `nft`. */
export const unreadable = '(cannot be read)';
export const withoutTool = '(nft is not there)';

/** True if a table of ours exists, or may exist. */
export function hasTable({ firewall }: Pick<Actual, 'firewall'>): boolean {
  return firewall !== null && !firewall.includes(withoutTool);
}

/**
 * True if rules that limit forwarded packets are in place, or may be. The other rules only limit or
 * mark arriving packets, or limit IPv6.
 */
export function boundsForwarding({ firewall }: Pick<Actual, 'firewall'>): boolean {
  return firewall?.some((mark) => /^(forward|postrouting|leaving) |^\(/.test(mark)) ?? false;
}

/** True if rules that reject IPv6 outside a full tunnel are in place, or may be. */
export function rejectsIpv6({ firewall }: Pick<Actual, 'firewall'>): boolean {
  return firewall?.some((mark) => mark.startsWith('outgoing ') || mark === unreadable) ?? false;
}

/** True if exactly the rules of a firewall are in place. */
export function isLoaded(firewall: Firewall, { firewall: marks }: Pick<Actual, 'firewall'>): boolean {
  return marks !== null && sameMembers(firewallMarks(firewall), marks);
}

/** True if the table of a closed network can be changed in place. Its sets with timeouts cannot. */
export function canChange(loaded: Firewall, wanted: Firewall): boolean {
  const formOf = ({ rules }: Firewall) => [
    ...new Set(rules.map(({ chain }) => chain)),
    ...rules.filter(({ deadline }) => deadline !== undefined).map((rule) => `${rule.chain} ${commentOf(rule)}`),
  ];
  return (
    loaded.access?.family === wanted.access?.family &&
    wanted.access !== undefined &&
    sameMembers(formOf(loaded), formOf(wanted))
  );
}

/** Returns the sorted `chain comment` of each rule, as a host shows a loaded firewall. */
export function firewallMarks({ rules, access }: Firewall): readonly string[] {
  const unhooked = access ? accessComments(access).map(({ chain, comment }) => `${chain} ${comment}`) : [];
  return [...rules.map((rule) => `${rule.chain} ${commentOf(rule)}`), ...unhooked].sort();
}

/** Seconds by which timeouts may differ: the service's time has whole seconds, from replies. */
const tolerance = 5;

/**
 * Returns the observed marks of our table, plus a mark for each element whose timeout differs from
 * its rule: a saved ruleset restores old timeouts. Returns the same list if none differs. `now` is
 * milliseconds since 1970 by the service's clock.
 */
export function markOtherTimeouts(firewall: Firewall | null, actual: Actual, now: number): Actual['firewall'] {
  if (firewall === null || actual.firewall === null || !isLoaded(firewall, actual)) return actual.firewall;
  const { timeouts = {} } = actual;
  const wanted = timeoutsOf(firewall.link, firewall.rules, now);
  const isOther = (name: string) => Math.abs((timeouts[name] ?? 0) - (wanted.get(name) ?? 0)) > tolerance;
  const others = [...new Set([...wanted.keys(), ...Object.keys(timeouts)])].filter(isOther);
  return others.length === 0 ? actual.firewall : [...actual.firewall, ...others.map((name) => `(timeout of ${name})`)];
}
