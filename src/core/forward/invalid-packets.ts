import type { PrefixMap } from '../map/prefix-maps.ts';
import { type Address, addressAt, type Prefix, rangeOf } from '../net/cidr.ts';
import { writeEnds, writeOne } from './nft-words.ts';
import type { PacketRule } from './packet-rule.ts';

/** The kernel translates no address of a packet whose state is invalid. */
const invalid = 'meta l4proto tcp ct state invalid';

/**
 * Maps TCP packets that do not fit the entry that conntrack has for their connection. That entry is
 * old if the connection went through another connector in the meantime. The addresses of a map
 * depend on no connection, so these packets are mapped one by one.
 *
 * Packets to the LAN's own addresses are refused before that, because mapped ones have the same
 * addresses.
 */
export function mapInvalid(
  link: string,
  maps: readonly PrefixMap[],
  { members, there }: { readonly members: readonly Prefix[]; readonly there: readonly Prefix[] },
): PacketRule[] {
  const [into, outOf] = [`oifname "${link}" ${invalid}`, `iifname "${link}" ${invalid}`];
  const locals = maps.map(({ local }) => local);
  const inward = writeEnds({ from: members, to: locals });
  return [
    { name: 'refuse-invalid', chain: 'redirected', text: `${outOf} ${writeOne('daddr', locals)} drop` },
    ...maps.map(({ route, local }): PacketRule => {
      const text = `${outOf} ${writeOne('daddr', [route])} ${replace('daddr', local)}`;
      return { name: 'map-invalid-inward', chain: 'redirected', text };
    }),
    { name: 'accept-invalid', chain: 'forward', text: `${outOf} ${inward} accept` },
    ...maps.map(({ route, local }): PacketRule => {
      const text = `${into} ${writeEnds({ from: [local], to: there })} ${replace('saddr', route)}`;
      return { name: 'map-invalid-outward', chain: 'leaving', text };
    }),
  ];
}

/** Replaces the network's part of an address, and keeps the host's part. */
function replace(field: 'saddr' | 'daddr', by: Prefix): string {
  const { first, last } = rangeOf(by);
  const hostPart: Address = addressAt(last - first);
  return `ip ${field} set ip ${field} & ${hostPart} | ${addressAt(first)}`;
}
