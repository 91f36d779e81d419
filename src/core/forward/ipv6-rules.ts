import { tunnelMark } from '../host-state/marks.ts';
import { type Ipv6Exceptions, near } from './ipv6-outside.ts';
import { widest, writeLinks, writeOne } from './nft-words.ts';
import type { PacketRule } from './packet-rule.ts';

/** Rejects IPv6 outside a full tunnel, of the host itself and forwarded (such as a container's). */
export function ipv6Rules(exceptions: Ipv6Exceptions): readonly PacketRule[] {
  const inChain = (chain: 'outgoing' | 'passing', rules: readonly Words[]) =>
    rules.map(([name, text]): PacketRule => ({ name, chain, text }));
  return [
    ...inChain('outgoing', [...common(exceptions), ...ownRules(exceptions), ...rejections]),
    ...inChain('passing', [...common(exceptions), ...rejections]),
  ];
}

export function isIpv6Rule({ chain }: PacketRule): boolean {
  return chain === 'outgoing' || chain === 'passing';
}

/** A rule's name and its text. All rules but the first match only IPv6. */
type Words = readonly [name: string, text: string];

function common({ links, prefixes }: Ipv6Exceptions): readonly Words[] {
  const to = widest([...near, ...prefixes.map(({ prefix }) => prefix)]);
  return [
    // IPv4 is left to the policy rules of the tunnel.
    ['pass-ipv4', 'meta nfproto ipv4 accept'],
    ['pass-inner-ipv6', `oifname ${writeLinks(links)} accept`],
    ['pass-ipv6-answers', 'ct direction reply accept'],
    // Packets that must not be tracked: neighbour discovery, and root's exceptions by `notrack`.
    ['pass-untracked-ipv6', 'ct state untracked accept'],
    ['pass-near-ipv6', `${writeOne('daddr', to)} accept`],
  ];
}

function ownRules({ endpoints, ports }: Ipv6Exceptions): readonly Words[] {
  const sockets = endpoints.map(({ host, port }) => `${host} . ${port}`).join(', ');
  return [
    ['pass-ipv6-discovery', `icmpv6 type { ${discovery} } accept`],
    ['pass-dhcpv6', 'udp sport { 546, 547 } udp dport { 546, 547 } accept'],
    // The upper half belongs to other programs (see marks.ts).
    ['pass-marked-ipv6', `meta mark & 0x0000ffff == 0x${tunnelMark.toString(16).padStart(8, '0')} accept`],
    ...(endpoints.length === 0
      ? []
      : [['pass-ipv6-endpoints', `ip6 daddr . udp dport { ${sockets} } accept`] as const]),
    ...(ports.length === 0 ? [] : [['pass-ipv6-ports', `udp sport { ${ports.join(', ')} } accept`] as const]),
  ];
}

/** Router and neighbour discovery (RFC 4861), and group membership (RFC 2710, RFC 3810). */
const discovery = '130, 131, 132, 133, 134, 135, 136, 137, 143';

/**
 * A reset ends an attempt immediately. An ICMP error arrives a second later, at the retransmission:
 * while `connect` sends, the socket is locked (tcp_v6_err in net/ipv6/tcp_ipv6.c).
 */
const rejections: readonly Words[] = [
  ['reject-ipv6-connections', 'tcp flags & (fin|syn|rst|ack) == syn reject with tcp reset'],
  // Earlier connections: if conntrack begins now, it cannot determine which side began them.
  ['pass-known-ipv6', 'meta l4proto tcp accept'],
  ['reject-ipv6', 'meta nfproto ipv6 reject with icmpv6 type admin-prohibited'],
];
