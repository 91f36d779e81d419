import nacl from 'tweetnacl';
import { familyOf } from './cidr.ts';
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
    const chain: Chain = rule.rule === 'clamp-mss' ? 'forward' : 'postrouting';
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
  if (rule.rule === 'clamp-mss') {
    return `oifname "${link}" tcp flags & (syn|rst) == syn tcp option maxseg size set rt mtu`;
  }
  const { from, to } = rule;
  if (familyOf(from) !== familyOf(to)) {
    throw new InvalidValue('masquerade', `${from} to ${to}`, 'mixes IPv4 and IPv6');
  }
  const family = familyOf(from) === 4 ? 'ip' : 'ip6';
  return `${family} saddr ${from} ${family} daddr ${to} oifname != "${link}" masquerade`;
}

function digest(text: string): string {
  return Buffer.from(nacl.hash(Buffer.from(text))).toString('hex', 0, 4);
}
