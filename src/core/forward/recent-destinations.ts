import type { Prefix } from '../net/cidr.ts';
import { protocolOf } from './nft-words.ts';
import type { PacketRule } from './packet-rule.ts';

/** The set of addresses in the network to which packets left this host lately. */
export const destinationSet = 'destinations';
/** Seconds for which an address stays after the latest packet to it. */
const destinationSeconds = 300;
/** Beyond this number, the kernel adds no address. */
const mostDestinations = 4096;

/** Records where packets into the tunnel go. No packet is refused. */
export function destinationRules(link: string, range: Prefix): PacketRule[] {
  const ip = protocolOf(range);
  const text = `oifname "${link}" ${ip} daddr ${range} update @${destinationSet} { ${ip} daddr }`;
  return [{ name: 'record-destination', chain: 'departing', text }];
}

/** Writes the set of these rules; empty without them. */
export function writeDestinationSet(rules: readonly PacketRule[]): string[] {
  return rules
    .filter(({ chain }) => chain === 'departing')
    .map(({ text }) => {
      const type = text.includes(' ip6 daddr ') ? 'ipv6_addr' : 'ipv4_addr';
      const kept = `flags dynamic, timeout; timeout ${destinationSeconds}s`;
      return `  set ${destinationSet} { type ${type}; size ${mostDestinations}; ${kept}; }\n`;
    });
}
