import {
  type Address,
  addressAt,
  familyOf,
  hostPrefix,
  isDefaultRoute,
  lengthOf,
  type Prefix,
  rangeOf,
  restorePrefix,
} from '../net/cidr.ts';
import { isPlainLinkName } from '../net/link-name.ts';
import type { KeptSession } from './kept-sessions.ts';
import type { Entrance } from './links-toward.ts';
import { protocolOf, widest, writeEnds, writeLinks, writeOne } from './nft-words.ts';
import type { PacketRule } from './packet-rule.ts';

/** The inputs of the rules for arriving packets. */
export interface Arrival {
  /** This host's address in the network, and the network's range. */
  readonly at: Address;
  readonly range: Prefix;
  /** The interfaces that lead only to containers, pods and virtual machines of this host. */
  readonly internal: readonly string[];
  /** The VRF of the tunnel; null without one. */
  readonly vrf: string | null;
  /** The interfaces of other networks that gave this host the same address. */
  readonly twins: readonly string[];
  /** Served prefixes, and the interfaces that lead to them; empty if this host is no connector. */
  readonly served: readonly Prefix[];
  readonly entrances: readonly Entrance[];
  /** True if packets of other hosts pass through the tunnel's interface. */
  readonly forwards: boolean;
  /** True if routes of the other address family lead into the tunnel: replies can arrive by it. */
  readonly hasOtherFamily: boolean;
  /** The addresses of this host outside its tunnels. */
  readonly addresses: readonly Address[];
  readonly kept: readonly KeptSession[];
  /** True if the kernel accepts IPv4 source routes. */
  readonly takesSourceRoutes: boolean;
}

/**
 * The rules for arriving packets: only the tunnel and the host itself reach the tunnel address, and
 * the tunnel reaches only that address and what the host serves. The rules judge a packet by its
 * destination on the wire.
 *
 * The interfaces that may reach the tunnel address are listed, not those that may not: a new
 * network card is closed from its first packet. The bridge of new containers opens with the next
 * pass.
 *
 * A host that does not forward needs no connection tracking, which would track all connections.
 */
export function arrivalRules(arrival: Arrival, link: string): readonly PacketRule[] {
  const { at, internal, vrf, twins, entrances } = arrival;
  const byLan = entrances.flatMap(({ by }) => by);
  const except = [link, 'lo', ...(vrf === null ? [] : [vrf]), ...twins, ...internal, ...byLan].filter(isPlainLinkName);
  const fromTunnel = `iifname "${link}"`;
  return [
    ...(arrival.takesSourceRoutes ? refuseSourceRoutes : []),
    ...arrival.kept.map(acceptSession),
    refuseNeighbours(at, [...new Set(except)]),
    ...mergeEntrances(entrances)
      .filter(({ by }) => !internal.includes(by))
      .map(({ by, from }) => refuseOutsideLan(at, by, from)),
    ...(arrival.forwards ? forwarderRules(fromTunnel, arrival) : [refuseOtherDestinations(fromTunnel, arrival)]),
    ...familyRules(fromTunnel, arrival),
  ];
}

/** The kernel sets the next destination of a source-routed packet after all arriving rules. */
const refuseSourceRoutes = ['lsrr', 'ssrr'].map((option) =>
  arriving('refuse-source-routes', `ip option ${option} exists drop`),
);

/** Keeps an SSH session that the next rules would end. It does not accept new connections. */
function acceptSession({ address, local }: KeptSession): PacketRule {
  const ends = writeEnds({ from: [hostPrefix(address)], to: [hostPrefix(local)] });
  return arriving('accept-session', `${ends} tcp flags & (fin|syn|rst|ack) != syn accept`);
}

/** Refuses packets to the tunnel address from interfaces other than these. */
function refuseNeighbours(at: Address, except: readonly string[]): PacketRule {
  return arriving('refuse-neighbours', `${protocolOf(at)} daddr ${at} iifname != ${writeLinks(except)} drop`);
}

/** Refuses packets to the tunnel address by a served LAN's interface from outside that LAN. */
function refuseOutsideLan(at: Address, by: string, from: readonly Prefix[]): PacketRule {
  const outside = writeOne('saddr', from, '!= ');
  return arriving('refuse-outside-lan', `iifname ${writeLinks([by])} ${protocolOf(at)} daddr ${at} ${outside} drop`);
}

/** From the tunnel, a host that does not forward accepts only its address, multicast, broadcast. */
function refuseOtherDestinations(fromTunnel: string, { at, range }: Arrival): PacketRule {
  const isFour = familyOf(at) === 4;
  const broadcasts = isFour ? [everyone, ...(lengthOf(range) < 31 ? [hostPrefix(lastOf(range))] : [])] : [];
  const except = widest([hostPrefix(at), groups[familyOf(at)], ...broadcasts]);
  return arriving('refuse-other-destinations', `${fromTunnel} ${writeOne('daddr', except, '!= ')} drop`);
}

/**
 * Accepts packets to this host's address and served prefixes except a default route, and replies.
 * Forwarding rules decide on packets to other hosts, also if a default route is served.
 */
function forwarderRules(fromTunnel: string, { at, served, vrf, addresses }: Arrival): PacketRule[] {
  const isOfFamily = (each: Prefix | Address) => familyOf(each) === familyOf(at);
  const taken = widest([hostPrefix(at), ...served.filter((prefix) => isOfFamily(prefix) && !isDefaultRoute(prefix))]);
  const except = writeOne('daddr', taken, '!= ');
  const everything = served.some((prefix) => isOfFamily(prefix) && isDefaultRoute(prefix));
  // The kernel's table of local addresses lacks those of a VRF (fib_table_lookup in
  // net/ipv4/fib_frontend.c).
  const own = vrf === null ? null : addresses.filter(isOfFamily);
  const local = own === null ? 'fib daddr type local' : own.length > 0 && writeOne('daddr', own.map(hostPrefix));
  const within = everything ? ` ct original ${writeOne('daddr', privateRanges[familyOf(at)])}` : '';
  const redirected = `${fromTunnel} ${begun} ct status dnat ct original ${except}${within} drop`;
  return [
    ...(local === false
      ? []
      : [
          arriving('refuse-other-addresses', `${fromTunnel} ${begun} ${except} ${local} drop`),
          arriving('refuse-other-addresses-untracked', `${fromTunnel} ${untracked} ${except} ${local} drop`),
        ]),
    // A program that redirects packets itself does not serve a private address, such as that of a
    // Kubernetes service, to any peer.
    { name: 'refuse-redirected', chain: 'redirected', text: redirected },
  ];
}

/** The network has addresses of one family. Refuses the other, except replies if possible. */
function familyRules(fromTunnel: string, { at, forwards, hasOtherFamily }: Arrival): PacketRule[] {
  const except = writeOne('daddr', [groups[familyOf(at) === 4 ? 6 : 4]], '!= ');
  if (!forwards && !hasOtherFamily) return [arriving('refuse-family', `${fromTunnel} ${except} drop`)];
  return [
    arriving('refuse-family-begun', `${fromTunnel} ${begun} ${except} drop`),
    arriving('refuse-family-untracked', `${fromTunnel} ${untracked} ${except} drop`),
  ];
}

function arriving(name: string, text: string): PacketRule {
  return { name, chain: 'arriving', text };
}

/** Untracked packets have no direction, and pass rules that match one. They need a second rule. */
const begun = 'ct direction original';
const untracked = 'ct state { invalid, untracked }';

/** An interface may lead to several served prefixes, alone or with other interfaces. */
function mergeEntrances(entrances: readonly Entrance[]): { readonly by: string; readonly from: readonly Prefix[] }[] {
  const links = [...new Set(entrances.flatMap(({ by }) => by))];
  const fromBy = (link: string) => entrances.filter(({ by }) => by.includes(link)).flatMap(({ from }) => from);
  return links.map((by) => ({ by, from: widest(fromBy(by)) }));
}

const prefix = (text: string) => restorePrefix(text);
const everyone = prefix('255.255.255.255/32');
const groups = { 4: prefix('224.0.0.0/4'), 6: prefix('ff00::/8') } as const;

/** RFC 1918, RFC 6598, RFC 4193, and the ranges that are local to a host or a link. */
const privateRanges = {
  4: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16'].map(prefix),
  6: ['fc00::/7', 'fe80::/10'].map(prefix),
} as const;

function lastOf(range: Prefix): Address {
  return addressAt(rangeOf(range).last);
}
