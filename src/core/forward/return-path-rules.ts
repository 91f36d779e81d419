import { outsideMark, wholeMarkBits } from '../host-state/marks.ts';
import { type Address, familyOf, type Prefix } from '../net/cidr.ts';
import type { PacketRule } from './packet-rule.ts';

/**
 * The packet rules of a full tunnel, which keep a connection outside it when it began outside. The policy rules know only answers from
 * addresses of this host: the answers of a container on a published port get such an address after the kernel has chosen their route.
 * So the connection is marked (`outsideMark`), and each of its packets before its route is chosen. A connection that began before the
 * table was there is marked by its next packet from outside.
 *
 * Nothing is marked that came to this host's address in the network: packets with forged addresses would otherwise take connections of
 * this host out of the tunnel, which bear that address.
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
    // The kernel looks up the route of each packet again whose mark changes: only of those that would enter the tunnel.
    { name: 'restore-sent', chain: 'answering', text: `oifname "${link}" ${restores}` },
  ];
}

export function isReturnPathRule({ chain }: PacketRule): boolean {
  return chain === 'returning' || chain === 'answering';
}

/**
 * Marks connections that another program redirects: to a container, or to a member of the network. What is redirected to where only the
 * full tunnel leads, as queries of containers to another resolver, goes through the tunnel.
 */
function markRedirected(link: string, own: Address, to: string): PacketRule {
  const text = `${writeBegun(link, own)} ct status dnat ${to} ${marksConnection}`;
  return { name: 'mark-redirected', chain: 'returning', text };
}

/** A packet of the side that began the connection, which came in from outside to another address than `except`. */
function writeBegun(link: string, except: Address): string {
  return `meta nfproto ipv4 iifname != { "lo", "${link}" } ct direction original ct original ip daddr != ${except}`;
}

/** Marks of programs that compare the whole mark stay as they are. */
const isFree = (mark: 'ct mark' | 'meta mark') => `${mark} & 0x${wholeMarkBits.toString(16)} == 0x0`;

const bit = `0x${outsideMark.toString(16)}`;
const setsMark = `meta mark set meta mark | ${bit}`;
const restores = `ct mark & ${bit} == ${bit} ${isFree('meta mark')} ${setsMark} accept`;
const marksConnection = `${isFree('ct mark')} ${isFree('meta mark')} ct mark set ct mark | ${bit} ${setsMark} accept`;
