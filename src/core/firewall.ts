import { type Address, familyOf, type Prefix } from './cidr.ts';
import { digestOf } from './digest.ts';
import { InvalidValue } from './errors.ts';
import type { Firewall, FirewallRule } from './step.ts';

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
  forward: 'type filter hook forward priority -150; policy accept;',
  postrouting: 'type nat hook postrouting priority 100; policy accept;',
} as const;

/** The name of our table, in the family `inet`. */
export function tableOf(link: string): string {
  return `cpn_${link}`;
}

/** The rules of a firewall, in the order in which they are applied. */
export function packetRules({ link, rules }: Firewall): PacketRule[] {
  return rules.map((rule) => {
    const chain: Chain = rule.rule.startsWith('masquerade') ? 'postrouting' : 'forward';
    const text = writeRule(link, rule);
    return { chain, text, comment: `cpn ${rule.rule} ${digest(`${chains[chain]} ${text}`)}` };
  });
}

/** What a host shows of a firewall that is in place, sorted: each rule's `chain comment`. */
export function firewallMarks(firewall: Firewall): string[] {
  return packetRules(firewall)
    .map(({ chain, comment }) => `${chain} ${comment}`)
    .sort();
}

function writeRule(link: string, rule: FirewallRule): string {
  const [into, outOf] = [`oifname "${link}"`, `iifname "${link}"`];
  switch (rule.rule) {
    case 'clamp-mss':
      return `${rule.way === 'out' ? into : outOf} tcp flags & (syn|rst) == syn tcp option maxseg size set rt mtu`;
    case 'refuse-detour':
      return `${outOf} ${into} ${writeWays(rule)} reject with icmpx host-unreachable`;
    case 'accept-replies':
      return `${outOf} ct state established,related accept`;
    case 'accept-published':
      return `${outOf} ct status dnat ct original ${protocolOf(rule.at)} daddr ${rule.at} accept`;
    case 'accept-relayed':
      return `${outOf} ${into} ${writeWays(rule)} accept`;
    case 'accept-inward':
      return `${outOf} ${writeWays(rule)} accept`;
    case 'accept-outward':
      return `iifname != "${link}" ${into} ${writeWays(rule)} accept`;
    case 'refuse-rest':
      return `${outOf} reject with icmpx admin-prohibited`;
    case 'masquerade':
      return `${writeWays(rule)} oifname != "${link}" masquerade`;
    case 'masquerade-outward':
      return `${into} ${writeWays(rule)} masquerade`;
    case 'masquerade-relayed':
      // No name of the interface that a packet came by is known any more where masquerading is done.
      return `${into} ${writeOne('saddr', rule.from)} ${protocolOf(rule.except)} saddr != ${rule.except} masquerade`;
  }
}

function writeWays({ from, to }: { readonly from: readonly Prefix[]; readonly to: readonly Prefix[] }): string {
  const mixed = new Set([...from, ...to].map(familyOf)).size > 1;
  if (mixed) throw new InvalidValue('packet rule', `${from} to ${to}`, 'mixes IPv4 and IPv6');
  return `${writeOne('saddr', from)} ${writeOne('daddr', to)}`;
}

function writeOne(field: 'saddr' | 'daddr', prefixes: readonly Prefix[]): string {
  const [first, ...rest] = prefixes;
  if (first === undefined) throw new InvalidValue('packet rule', field, 'names no address range');
  return `${protocolOf(first)} ${field} ${rest.length === 0 ? first : `{ ${prefixes.join(', ')} }`}`;
}

function protocolOf(value: Address | Prefix): 'ip' | 'ip6' {
  return familyOf(value) === 4 ? 'ip' : 'ip6';
}

function digest(text: string): string {
  return digestOf(text, 4);
}
