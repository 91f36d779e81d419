import { outsideMark, wholeMarkBits } from '../host-state/marks.ts';
import { type Address, familyOf, type Prefix } from '../net/cidr.ts';
import type { PacketRule } from './packet-rule.ts';

/**
 * Keeps a connection outside a full tunnel if it began outside. The policy rules match only replies
 * from addresses of this host, but replies of a container on a published port get such an address
 * after their route is chosen. So the connection is marked (`outsideMark`), and each packet before
 * its route is chosen. The next packet from outside marks a connection older than the table.
 *
 * Connections to this host's address in the network are never marked: packets with forged addresses
 * could take its connections out of the tunnel.
 */
export function returnPathRules(link: string, own: Address, range: Prefix): readonly PacketRule[] {
  if (familyOf(own) !== 4) return [];
  return [
    { name: 'restore-arriving', chain: 'returning', text: restores },
    {
      name: 'mark-outside',
      chain: 'returning',
      text: `${writeBegun(link, own)} fib daddr type local ${marksConnection}`,
    },
    markRedirected(link, own, `fib daddr oifname != "${link}"`),
    markRedirected(link, own, `ip daddr ${range}`),
    // The kernel repeats the route lookup of a packet if its mark changes. This applies only to
    // packets that would enter the tunnel.
    { name: 'restore-sent', chain: 'answering', text: `oifname "${link}" ${restores}` },
  ];
}

export function isReturnPathRule({ chain }: PacketRule): boolean {
  return chain === 'returning' || chain === 'answering';
}

/**
 * Marks connections that another program redirects to a container or a member of the network. Those
 * redirected to where only the full tunnel leads, such as DNS queries, go through the tunnel.
 */
function markRedirected(link: string, own: Address, to: string): PacketRule {
  const text = `${writeBegun(link, own)} ct status dnat ${to} ${marksConnection}`;
  return { name: 'mark-redirected', chain: 'returning', text };
}

/** Matches packets from outside, not to `except`, of the side that began the connection. */
function writeBegun(link: string, except: Address): string {
  return `meta nfproto ipv4 iifname != { "lo", "${link}" } ct direction original ct original ip daddr != ${except}`;
}

/** True of a mark without bits of programs that compare the whole mark: those stay unchanged. */
const isFree = (mark: 'ct mark' | 'meta mark') => `${mark} & 0x${wholeMarkBits.toString(16)} == 0x0`;

const bit = `0x${outsideMark.toString(16)}`;
const setsMark = `meta mark set meta mark | ${bit}`;
const restores = `ct mark & ${bit} == ${bit} ${isFree('meta mark')} ${setsMark} accept`;
const marksConnection = `${isFree('ct mark')} ${isFree('meta mark')} ct mark set ct mark | ${bit} ${setsMark} accept`;
