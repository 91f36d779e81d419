import { digestOf } from '../crypto/digest.ts';
import type { Actual } from '../host-state/actual.ts';
import type { Address, Prefix } from '../net/cidr.ts';
import { sameMembers } from '../util/same-data.ts';
import { splitDeadlines } from './deadline-rules.ts';
import type { Firewall, FirewallRule } from './firewall-rule.ts';
import { protocolOf, writeEnds, writeLinks, writeOne } from './nft-words.ts';
import { arrivalChainOf, isArrivalRule, writeArrivalRule } from './write-arrival-rule.ts';
import { describeDeadlines, isDeadlineRule, writeDeadlineRule } from './write-deadline-rule.ts';
import { ipv6ChainOf, isIpv6Rule, writeIpv6Rule } from './write-ipv6-rule.ts';
import { isReturnPathRule, returnPathChainOf, writeReturnPathRule } from './write-return-path-rule.ts';

/** A packet rule in nft's words, with the comment by which it is known again. */
export interface PacketRule {
  readonly chain: Chain;
  readonly text: string;
  /** `cpn`, the rule's name, and a hash of its words: nft prints rules otherwise than they were written. */
  readonly comment: string;
}

export type Chain = keyof typeof chains;

/** The chains that rules are in. Priorities are numbers because nft before 0.9.1 knows no names for them. */
export const chains = {
  /** After conntrack (-200), before any program gives a packet another destination (-100). */
  arriving: 'type filter hook prerouting priority -150; policy accept;',
  /** After that, and before the kernel decides whether a packet is for this host. */
  redirected: 'type filter hook prerouting priority -1; policy accept;',
  /** After redirections (-100), and before the kernel chooses a route. */
  returning: 'type filter hook prerouting priority -99; policy accept;',
  /** The kernel chooses the route again when a mark changes. */
  answering: 'type route hook output priority -150; policy accept;',
  /** Before the rules of other programs. Kernels before 5.9 reject nothing in prerouting. */
  probed: 'type filter hook input priority -150; policy accept;',
  forward: 'type filter hook forward priority -150; policy accept;',
  /** After a redirection, when the interface by which a packet leaves is known. */
  outgoing: 'type filter hook output priority 0; policy accept;',
  passing: 'type filter hook forward priority 0; policy accept;',
  postrouting: 'type nat hook postrouting priority 100; policy accept;',
  /** After masquerading, by whichever program. */
  leaving: 'type filter hook postrouting priority 101; policy accept;',
} as const;

/** The name of our table, in the family `inet`. */
export function tableOf(link: string): string {
  return `cpn_${link}`;
}

/** The rules of a firewall, in the order in which they are applied. */
export function packetRules({ link, rules }: Firewall): PacketRule[] {
  return rules.map((rule) => {
    const chain = chainOf(rule);
    const text = writeRule(link, rule);
    const deadlines = isDeadlineRule(rule) ? ` ${describeDeadlines(rule)}` : '';
    return { chain, text, comment: `cpn ${rule.rule} ${digestOf(`${chains[chain]} ${text}${deadlines}`, 4)}` };
  });
}

function chainOf(given: FirewallRule): Chain {
  if (isArrivalRule(given)) return arrivalChainOf(given);
  if (isReturnPathRule(given)) return returnPathChainOf(given);
  if (isIpv6Rule(given)) return ipv6ChainOf(given);
  if (isDeadlineRule(given)) {
    if (given.rule === 'refuse-probes') return 'probed';
    return splitDeadlines([given]).entering.length > 0 ? 'arriving' : 'forward';
  }
  const { rule } = given;
  if (rule === 'accept-leaving-answers' || rule === 'refuse-foreign') return 'leaving';
  return rule.startsWith('masquerade') ? 'postrouting' : 'forward';
}

/** Placeholders for rules: those of a table that cannot be read, and of a host on which `nft` is missing or cannot work. */
export const unreadable = '(cannot be read)';
export const withoutTool = '(nft is not there)';

/** True when there is a table of ours, or may be. */
export function hasTable({ firewall }: Pick<Actual, 'firewall'>): boolean {
  return firewall !== null && !firewall.includes(withoutTool);
}

/**
 * True when rules for what is forwarded are in place, or may be: a table without any bounds only what arrives, or marks it, or bounds
 * IPv6.
 */
export function boundsForwarding({ firewall }: Pick<Actual, 'firewall'>): boolean {
  return (
    firewall?.some((mark) => !/^(arriving|probed|redirected|returning|answering|outgoing|passing) /.test(mark)) ?? false
  );
}

/** True when rules that reject IPv6 outside a full tunnel are in place, or may be. */
export function rejectsIpv6({ firewall }: Pick<Actual, 'firewall'>): boolean {
  return firewall?.some((mark) => mark.startsWith('outgoing ') || mark === unreadable) ?? false;
}

/** True when the very rules of a firewall are in place. */
export function isLoaded(firewall: Firewall, { firewall: marks }: Pick<Actual, 'firewall'>): boolean {
  return marks !== null && sameMembers(firewallMarks(firewall), marks);
}

/** What a host shows of a firewall that is in place, sorted: each rule's `chain comment`. */
export function firewallMarks(firewall: Firewall): readonly string[] {
  return packetRules(firewall)
    .map(({ chain, comment }) => `${chain} ${comment}`)
    .sort();
}

/**
 * Our bit of a connection's mark, on those that this host masqueraded for a network: it tells them from those that another
 * program gave another source. No other bit is touched, and no connection that goes through no tunnel of ours.
 */
const ownMark = '0x20000000';

/** Of a connection whose first packet passed here before; with its source changed, or not. */
const isKnown = 'ct status & (confirmed|snat)';
const knownAsItIs = `${isKnown} == confirmed`;
const knownFromHere = `${isKnown} == (confirmed|snat) ct mark & ${ownMark} == ${ownMark}`;
const knownFromElsewhere = `ct status & (confirmed|snat) == (confirmed|snat) ct mark & ${ownMark} != ${ownMark}`;

function writeRule(link: string, rule: FirewallRule): string {
  if (isArrivalRule(rule)) return writeArrivalRule(link, rule);
  if (isReturnPathRule(rule)) return writeReturnPathRule(link, rule);
  if (isIpv6Rule(rule)) return writeIpv6Rule(rule);
  if (isDeadlineRule(rule)) return writeDeadlineRule(link, rule);
  const [into, outOf] = [`oifname "${link}"`, `iifname "${link}"`];
  switch (rule.rule) {
    case 'clamp-mss':
      return `${rule.direction === 'out' ? into : outOf} tcp flags & (syn|rst) == syn tcp option maxseg size set rt mtu`;
    case 'refuse-detour':
      return `${outOf} ${into} ${writeEnds(rule)} reject with icmpx host-unreachable`;
    case 'accept-passing-answers':
      return `${ipv4} iifname ${writeLinks(rule.by)} oifname ${writeLinks(rule.toward)} ct direction reply accept`;
    case 'refuse-passing':
      return `${ipv4} iifname ${writeLinks(rule.by)} oifname ${writeLinks(rule.toward)} drop`;
    case 'refuse-stale':
      return `${writeOrigin(rule)} ${rule.masquerade ? knownAsItIs : knownFromHere} drop`;
    case 'accept-published':
      return `${outOf} ${writePublished(rule.at)} accept`;
    case 'accept-answers':
      return `${writeDirection(link, rule.direction)} ct direction reply ${writeOrigin(rule)} accept`;
    case 'accept-local-answers': {
      const except = rule.outside.length === 0 ? '' : ` oifname != ${writeLinks(rule.outside)}`;
      return `${outOf}${except} ct direction reply ${knownFromElsewhere} accept`;
    }
    case 'refuse-answers':
      return `${rule.direction === 'in' ? outOf : into} ct direction reply drop`;
    case 'accept-relayed':
      return `${outOf} ${into} ${writeEnds(rule)} accept`;
    case 'accept-inward':
      return `${outOf} ${writeEnds(rule)} accept`;
    case 'accept-exit':
      return `${outOf} oifname ${writeLinks(rule.by)} ${writeEnds(rule)} ${writeOne('daddr', rule.except, '!= ')} accept`;
    case 'accept-exit-answers':
      return `iifname ${writeLinks(rule.by)} ${into} ct direction reply ${writeOrigin(rule)} ct original ${writeOne('daddr', rule.except, '!= ')} accept`;
    case 'refuse-rest':
      return `${outOf} reject with icmpx admin-prohibited`;
    case 'accept-published-answers':
      return `${into} ct direction reply ${writePublished(rule.at)} accept`;
    case 'accept-outward':
      return `iifname ${writeLinks(rule.by)} ${into} ${writeEnds(rule)} accept`;
    case 'refuse-spoofed':
      return `${into} ${writeOne('saddr', rule.from)} drop`;
    case 'refuse-outside':
      return `iifname ${writeLinks(rule.by)} ${into} drop`;
    case 'refuse-known':
      return `${into} ${knownFromHere} drop`;
    case 'masquerade':
      return `${writeEnds(rule)} oifname != "${link}" ${markOwn} masquerade`;
    case 'masquerade-outward':
      return `${into} ${writeEnds(rule)} ${markOwn} masquerade`;
    case 'masquerade-relayed':
      // No name of the interface that a packet came by is known any more where masquerading is done.
      return `${into} ${writeOne('saddr', rule.from)} ${protocolOf(rule.except)} saddr != ${rule.except} masquerade`;
    case 'accept-leaving-answers':
      return `${into} ct direction reply accept`;
    case 'refuse-foreign':
      return `${into} ${writeOne('saddr', rule.from, '!= ')} fib saddr type != local drop`;
  }
}

/** Forwarding of IPv6 has switches of its own, which are left as they are. */
const ipv4 = 'meta nfproto ipv4';
const markOwn = `ct mark set ct mark | ${ownMark}`;

function writeDirection(link: string, direction: 'in' | 'out' | 'across'): string {
  const [into, outOf] = [`oifname "${link}"`, `iifname "${link}"`];
  return direction === 'across' ? `${outOf} ${into}` : direction === 'in' ? outOf : into;
}

/** The ends of a connection as its first packet had them, whichever way a packet goes and whatever addresses it bears now. */
function writeOrigin({ from, to }: { readonly from: readonly Prefix[]; readonly to: readonly Prefix[] }): string {
  return `ct original ${writeOne('saddr', from)} ct original ${writeOne('daddr', to)}`;
}

function writePublished(at: Address): string {
  return `ct status dnat ct original ${protocolOf(at)} daddr ${at}`;
}
