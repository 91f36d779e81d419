import { tunnelMark } from '../host-state/marks.ts';
import type { FirewallRule } from './firewall-rule.ts';
import type { Ipv6Rule } from './ipv6-outside.ts';
import { writeLinks, writeOne } from './nft-words.ts';

const names: ReadonlySet<string> = new Set<Ipv6Rule['rule']>([
  'pass-ipv4',
  'pass-inner-ipv6',
  'pass-ipv6-answers',
  'pass-untracked-ipv6',
  'pass-near-ipv6',
  'pass-ipv6-discovery',
  'pass-dhcpv6',
  'pass-marked-ipv6',
  'pass-ipv6-endpoints',
  'pass-ipv6-ports',
  'reject-ipv6-connections',
  'pass-known-ipv6',
  'reject-ipv6',
]);

export function isIpv6Rule(rule: FirewallRule): rule is Ipv6Rule {
  return names.has(rule.rule);
}

export function ipv6ChainOf({ of }: Ipv6Rule): 'outgoing' | 'passing' {
  return of === 'host' ? 'outgoing' : 'passing';
}

/** Writes a rule in nft's words. All but the first meet IPv6 alone. */
export function writeIpv6Rule(rule: Ipv6Rule): string {
  switch (rule.rule) {
    case 'pass-ipv4':
      return 'meta nfproto ipv4 accept';
    case 'pass-inner-ipv6':
      return `oifname ${writeLinks(rule.by)} accept`;
    case 'pass-ipv6-answers':
      return 'ct direction reply accept';
    case 'pass-untracked-ipv6':
      return 'ct state untracked accept';
    case 'pass-near-ipv6':
      return `${writeOne('daddr', rule.to)} accept`;
    case 'pass-ipv6-discovery':
      return `icmpv6 type { ${discovery} } accept`;
    case 'pass-dhcpv6':
      return 'udp sport { 546, 547 } udp dport { 546, 547 } accept';
    case 'pass-marked-ipv6':
      // The upper half belongs to other programs (see marks.ts).
      return `meta mark & 0x0000ffff == 0x${tunnelMark.toString(16).padStart(8, '0')} accept`;
    case 'pass-ipv6-endpoints':
      return `ip6 daddr . udp dport { ${rule.endpoints.map(({ host, port }) => `${host} . ${port}`).join(', ')} } accept`;
    case 'pass-ipv6-ports':
      return `udp sport { ${rule.ports.join(', ')} } accept`;
    case 'reject-ipv6-connections':
      return 'tcp flags & (fin|syn|rst|ack) == syn reject with tcp reset';
    case 'pass-known-ipv6':
      return 'meta l4proto tcp accept';
    case 'reject-ipv6':
      return 'meta nfproto ipv6 reject with icmpv6 type admin-prohibited';
  }
}

/** Router and neighbour discovery (RFC 4861), and group membership (RFC 2710, RFC 3810). */
const discovery = '130, 131, 132, 133, 134, 135, 136, 137, 143';
