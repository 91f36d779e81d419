import type { Address, Prefix } from '../net/cidr.ts';
import { linkLocal, probeRange } from '../paths/probe-address.ts';
import { protocolOf } from './nft-words.ts';
import type { PacketRule } from './packet-rule.ts';

/** One name for all: a list of changed rules shows names, and these change together. */
const directPaths = 'direct-paths';

/**
 * Admits echoes between probe addresses, and refuses everything else from link-local addresses in
 * the tunnel: before a path is proven, nothing else goes over it. A closed network has no rule for
 * these addresses, so its filter needs exceptions.
 *
 * No rule refuses other interfaces: the kernel delivers a packet to a link-local address only by
 * the interface that has it (rt6_need_strict in net/ipv6/route.c).
 *
 * @param own the probe address of this host
 */
export function probeRules(link: string, own: Address, isClosed: boolean): readonly PacketRule[] {
  const fromTunnel = `iifname "${link}"`;
  const intoTunnel = `oifname "${link}"`;
  const echo = 'icmpv6 type { echo-request, echo-reply } accept';
  // The MTU of the peer may be smaller. Others are lost without the first one, which is an echo.
  const rest = 'frag frag-off != 0 accept';
  const [arriving, arrivingRest] = [echo, rest].map(
    (what) => `${fromTunnel} ip6 saddr ${probeRange} ip6 daddr ${own} ${what}`,
  ) as [string, string];
  const [leaving, leavingRest] = [echo, rest].map(
    (what) => `${intoTunnel} ip6 saddr ${own} ip6 daddr ${probeRange} ${what}`,
  ) as [string, string];
  return [
    { name: directPaths, chain: 'arriving', text: arriving },
    { name: directPaths, chain: 'arriving', text: arrivingRest },
    { name: directPaths, chain: 'arriving', text: `${fromTunnel} ip6 saddr ${linkLocal} drop` },
    ...(isClosed
      ? ([
          { name: directPaths, chain: 'admitting', text: arriving },
          { name: directPaths, chain: 'admitting', text: arrivingRest },
          { name: directPaths, chain: 'sending', text: leaving },
          { name: directPaths, chain: 'sending', text: leavingRest },
        ] as const)
      : []),
  ];
}

/** The set of addresses in the network to which packets left this host lately. */
export const destinationSet = 'destinations';
/**
 * Seconds for which an address stays after the latest packet to it. While any packets leave, such
 * as probes of connectors, the daemon takes each address here for one in use.
 */
const destinationSeconds = 10;
/** Beyond this number, the kernel adds no address. */
const mostDestinations = 4096;

/** Records where packets into the tunnel go. No packet is refused. */
export function destinationRules(link: string, range: Prefix): PacketRule[] {
  const ip = protocolOf(range);
  const text = `oifname "${link}" ${ip} daddr ${range} update @${destinationSet} { ${ip} daddr }`;
  return [{ name: directPaths, chain: 'departing', text }];
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
