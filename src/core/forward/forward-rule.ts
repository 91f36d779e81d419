import type { PrefixMap } from '../map/prefix-maps.ts';
import type { Address, Prefix } from '../net/cidr.ts';
import { protocolOf, type RuleEnds, writeEnds, writeLinks, writeOne } from './nft-words.ts';
import type { PacketRule } from './packet-rule.ts';

/** Names of interfaces, at least one unless stated otherwise. */
type Links = readonly string[];

/**
 * Our bit of a connection's mark, for connections that this host masqueraded for a network. Other
 * bits, and connections outside our tunnels, do not change.
 */
const ownMark = '0x20000000';
const markOwn = `ct mark set ct mark | ${ownMark}`;

/** Our bit for connections whose destination this host mapped. */
const mappedMark = '0x40000000';

/** Matches connections whose first packet passed here before, with or without a changed source. */
const isKnown = 'ct status & (confirmed|snat)';
const knownAsItIs = `${isKnown} == confirmed`;
const wasSeen = 'ct status & confirmed == confirmed';
const knownFromHere = `${isKnown} == (confirmed|snat) ct mark & ${ownMark} == ${ownMark}`;
const knownFromElsewhere = `${isKnown} == (confirmed|snat) ct mark & ${ownMark} != ${ownMark}`;

/** Matches the first packet of a TCP connection. */
const begun = 'tcp flags & (fin|syn|rst|ack) == syn';

/** Matches TCP packets without a SYN: if conntrack has no connection, it began elsewhere. */
const begunElsewhere = 'tcp flags & (fin|syn|rst|ack) != syn';

/** IPv6 forwarding has separate sysctls, which stay as they are. */
const ipv4 = 'meta nfproto ipv4';

/** The rules for packets that a host forwards out of its tunnel or into it. */
export function forwardRulesOf(link: string) {
  const [into, outOf] = [`oifname "${link}"`, `iifname "${link}"`];
  const across = `${outOf} ${into}`;
  return {
    /** Lowers the MSS of TCP connections through the tunnel to the size that fits. */
    clampMss: (direction: 'in' | 'out') =>
      forward(
        'clamp-mss',
        `${direction === 'out' ? into : outOf} tcp flags & (syn|rst) == syn tcp option maxseg size set rt mtu`,
      ),
    /** Two connectors that both lost a peer would loop relayed packets until the TTL expires. */
    refuseDetour: (ends: RuleEnds) =>
      forward('refuse-detour', `${across} ${writeEnds(ends)} reject with icmpx host-unreachable`),
    /**
     * Ends connections that began masqueraded if masquerading is now off, or the reverse. Leaves
     * out those from or to `except`: from peer to peer, none is masqueraded here.
     */
    refuseStale: (masquerade: boolean, ends: RuleEnds, except: Partial<RuleEnds>) => {
      const others = [writeExcept('saddr', except.from), writeExcept('daddr', except.to)].join('');
      return reset('refuse-stale', `${writeOrigin(ends)}${others} ${masquerade ? knownAsItIs : knownFromHere}`);
    },
    /** Ends connections to a route that began with another map, or with none. */
    refuseRemapped: (from: readonly Prefix[], { route, local }: PrefixMap) =>
      reset('refuse-remapped', `${writeOrigin({ from, to: [route] })} ct reply ${writeOne('saddr', [local], '!= ')}`),
    /** Ends connections to routes that began with a map and have none any more. */
    refuseUnmapped: (ends: RuleEnds, maps: readonly PrefixMap[]) => {
      const except = maps.length === 0 ? '' : ` ct original ${writeOne('daddr', routes(maps), '!= ')}`;
      return reset('refuse-unmapped', `ct mark & ${mappedMark} == ${mappedMark} ${writeOrigin(ends)}${except}`);
    },
    /** Ends connections from a mapped LAN that began with a source other than this one. */
    refuseResourced: (local: Prefix, to: readonly Prefix[], source: Prefix) => {
      const origin = writeOrigin({ from: [local], to });
      return reset('refuse-remapped', `${origin} ${wasSeen} ct reply ${writeOne('daddr', [source], '!= ')}`);
    },
    /** Accepts packets to this host that another program redirects, such as to a container. */
    acceptPublished: (at: Address) => forward('accept-published', `${outOf} ${writePublished(at)} accept`),
    acceptPublishedAnswers: (at: Address) =>
      forward('accept-published-answers', `${into} ct direction reply ${writePublished(at)} accept`),
    /** Accepts replies between these ends: out of the tunnel, into it, or from peer to peer. */
    acceptAnswers: (direction: 'in' | 'out' | 'across', ends: RuleEnds) => {
      const by = { in: outOf, out: into, across }[direction];
      return forward('accept-answers', `${by} ct direction reply ${writeOrigin(ends)} accept`);
    },
    /** Accepts replies to connections from behind this host, masqueraded by another program. */
    acceptLocalAnswers: (outside: Links) => {
      const except = outside.length === 0 ? '' : ` oifname != ${writeLinks(outside)}`;
      return forward('accept-local-answers', `${outOf}${except} ct direction reply ${knownFromElsewhere} accept`);
    },
    /** Refuses all other replies that come out of the tunnel or go into it. */
    refuseAnswers: (direction: 'in' | 'out') =>
      forward('refuse-answers', `${direction === 'in' ? outOf : into} ct direction reply drop`),
    acceptRelayed: (ends: RuleEnds) => forward('accept-relayed', `${across} ${writeEnds(ends)} accept`),
    /** Accepts packets from the network to the LAN. */
    acceptInward: (ends: RuleEnds) => forward('accept-inward', `${outOf} ${writeEnds(ends)} accept`),
    /** Accepts packets to a LAN only by the route that is mapped to it. */
    acceptMapped: (from: readonly Prefix[], maps: readonly PrefixMap[]) =>
      forward('accept-mapped', `${outOf} ${writeEnds({ from, to: locals(maps) })} ${writeMapped(maps)} accept`),
    /** Accepts packets that leave by the host's default routes, except to special ranges. */
    acceptExit: ({ by, except, ...ends }: Exit) =>
      forward(
        'accept-exit',
        `${outOf} oifname ${writeLinks(by)} ${writeEnds(ends)} ${writeOne('daddr', except, '!= ')} accept`,
      ),
    acceptExitAnswers: ({ by, except, ...ends }: Exit) => {
      const origin = `${writeOrigin(ends)} ct original ${writeOne('daddr', except, '!= ')}`;
      return forward('accept-exit-answers', `iifname ${writeLinks(by)} ${into} ct direction reply ${origin} accept`);
    },
    /** Refuses all else from the tunnel: a peer reaches only what is advertised. */
    refuseRest: () => forward('refuse-rest', `${outOf} reject with icmpx admin-prohibited`),
    /** Accepts packets from the LAN into the network, by the interfaces that its routes use. */
    acceptOutward: (by: Links, ends: RuleEnds) =>
      forward('accept-outward', `iifname ${writeLinks(by)} ${into} ${writeEnds(ends)} accept`),
    /**
     * Refuses connections that these prefixes begin: hosts accept their source from another
     * connector alone. Later TCP packets pass, because hosts may use this one before it notices.
     */
    refuseStandby: (ends: RuleEnds, except: RuleEnds) => {
      const other = [
        ...(except.from.length > 0 ? [`${writeOne('saddr', except.from, '!= ')} `] : []),
        ...(except.to.length > 0 ? [`${writeOne('daddr', except.to, '!= ')} `] : []),
      ].join('');
      const begins = [begun, 'meta l4proto != tcp ct direction original ct state != related'];
      return begins.map((each) =>
        forward('refuse-standby', `${into} ${writeEnds(ends)} ${other}${each} reject with icmpx host-unreachable`),
      );
    },
    /** Refuses packets with a source in the network or a LAN that arrived by another interface. */
    refuseSpoofed: (from: readonly Prefix[]) => forward('refuse-spoofed', `${into} ${writeOne('saddr', from)} drop`),
    /** Refuses all other packets that arrive by these interfaces, from neighbours of this host. */
    refuseOutside: (by: Links) => forward('refuse-outside', `iifname ${writeLinks(by)} ${into} drop`),
    /** Ends connections masqueraded here into the tunnel that no route accepts any more. */
    refuseKnown: () => forward('refuse-known', `${into} ${knownFromHere} drop`),
    /** Keeps the sender's address, unless `always` only of TCP that began elsewhere. */
    keepRelayed: (ends: RuleEnds, always: boolean) =>
      masquerading('keep-relayed', `${into} ${writeEnds(ends)}${always ? '' : ` ${begunElsewhere}`} accept`),
    /** Masquerades packets from one peer to another with this peer's address. */
    masqueradeRelayed: (from: readonly Prefix[], except: Address) =>
      // Where masquerading is done, the incoming interface is no longer known.
      masquerading(
        'masquerade-relayed',
        `${into} ${writeOne('saddr', from)} ${protocolOf(except)} saddr != ${except} masquerade`,
      ),
    /** Masquerades packets from the tunnel to the LAN, which then needs no route back. */
    masquerade: (ends: RuleEnds) =>
      masquerading('masquerade', `${writeEnds(ends)} oifname != "${link}" ${markOwn} masquerade`),
    /** Masquerades packets from the tunnel to a mapped LAN. */
    masqueradeMapped: (from: readonly Prefix[], maps: readonly PrefixMap[]) =>
      masquerading(
        'masquerade-mapped',
        `${writeOne('saddr', from)} ${writeMapped(maps)} oifname != "${link}" ${markOwn} masquerade`,
      ),
    /** Gives packets to mapped routes their destination in the LAN. */
    mapInward: (maps: readonly PrefixMap[]): PacketRule => {
      const pairs = maps.map(({ route, local }) => `${route} : ${local}`).join(', ');
      const marked = `ct mark set ct mark | ${mappedMark}`;
      const text = `${outOf} ${writeOne('daddr', routes(maps))} ${marked} dnat ip prefix to ip daddr map { ${pairs} }`;
      return { name: 'map-inward', chain: 'mapping', text };
    },
    /** Gives packets from a mapped LAN into the tunnel their source in the network. */
    mapOutward: (maps: readonly PrefixMap[], to: readonly Prefix[]): PacketRule => {
      const pairs = maps.map(({ route, local }) => `${local} : ${route}`).join(', ');
      const ends = writeEnds({ from: locals(maps), to });
      const text = `${into} ${ends} ${markOwn} snat ip prefix to ip saddr map { ${pairs} }`;
      return { name: 'map-outward', chain: 'sourcing', text };
    },
    /** Masquerades packets from the LAN into the tunnel with this peer's address. */
    masqueradeOutward: (ends: RuleEnds) =>
      masquerading('masquerade-outward', `${into} ${writeEnds(ends)} ${markOwn} masquerade`),
    /**
     * Drops the kernel's ICMP redirects for relayed packets. The only sysctl that prevents them
     * applies to every interface (IN_DEV_TX_REDIRECTS, include/linux/inetdevice.h).
     */
    refuseRedirects: (family: 4 | 6) =>
      leaving('refuse-redirects', `${into} ${family === 4 ? 'icmp type redirect' : 'icmpv6 type nd-redirect'} drop`),
    /** Leaves replies to the rules before masquerading. */
    acceptLeavingAnswers: () => leaving('accept-leaving-answers', `${into} ct direction reply accept`),
    /** After masquerading: refuses sources that are neither this host's nor in `from`. */
    refuseForeign: (from: readonly Prefix[]) =>
      leaving('refuse-foreign', `${into} ${writeOne('saddr', from, '!= ')} fib saddr type != local drop`),
  };
}

interface Exit extends RuleEnds {
  readonly by: Links;
  readonly except: readonly Prefix[];
}

/**
 * For packets that arrive by interfaces whose forwarding is on only for this connector, and would
 * leave by an interface that existed before: only replies to connections that began elsewhere pass.
 */
export function refusePassing(by: Links, toward: Links): PacketRule[] {
  const passing = `${ipv4} iifname ${writeLinks(by)} oifname ${writeLinks(toward)}`;
  return [
    forward('accept-passing-answers', `${passing} ct direction reply accept`),
    forward('refuse-passing', `${passing} drop`),
  ];
}

function forward(name: string, text: string): PacketRule {
  return { name, chain: 'forward', text };
}

/** Answers, so that a client connects again at once. */
function reset(name: string, match: string): PacketRule[] {
  return [
    forward(name, `${match} meta l4proto tcp reject with tcp reset`),
    forward(name, `${match} reject with icmpx admin-prohibited`),
  ];
}

function masquerading(name: string, text: string): PacketRule {
  return { name, chain: 'postrouting', text };
}

function leaving(name: string, text: string): PacketRule {
  return { name, chain: 'leaving', text };
}

/** Matches a connection's original ends, in either direction and with any translation. */
function writeOrigin({ from, to }: RuleEnds): string {
  return `ct original ${writeOne('saddr', from)} ct original ${writeOne('daddr', to)}`;
}

function writeExcept(field: 'saddr' | 'daddr', prefixes: readonly Prefix[] = []): string {
  return prefixes.length === 0 ? '' : ` ct original ${writeOne(field, prefixes, '!= ')}`;
}

function writePublished(at: Address): string {
  return `ct status dnat ct original ${protocolOf(at)} daddr ${at}`;
}

/** Matches the destination that a packet had before it was mapped. */
function writeMapped(maps: readonly PrefixMap[]): string {
  return `ct original ${writeOne('daddr', routes(maps))}`;
}

function routes(maps: readonly PrefixMap[]): Prefix[] {
  return maps.map(({ route }) => route);
}

function locals(maps: readonly PrefixMap[]): Prefix[] {
  return maps.map(({ local }) => local);
}
