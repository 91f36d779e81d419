import type { Address, Prefix } from '../net/cidr.ts';
import { protocolOf, type RuleEnds, writeEnds, writeLinks, writeOne } from './nft-words.ts';
import type { PacketRule } from './packet-rule.ts';

/** Names of interfaces, at least one where nothing else is said. */
type Links = readonly string[];

/**
 * Our bit of a connection's mark, on those that this host masqueraded for a network: it tells them from those that another
 * program gave another source. No other bit is touched, and no connection that goes through no tunnel of ours.
 */
const ownMark = '0x20000000';
const markOwn = `ct mark set ct mark | ${ownMark}`;

/** Of a connection whose first packet passed here before; with its source changed, or not. */
const isKnown = 'ct status & (confirmed|snat)';
const knownAsItIs = `${isKnown} == confirmed`;
const knownFromHere = `${isKnown} == (confirmed|snat) ct mark & ${ownMark} == ${ownMark}`;
const knownFromElsewhere = `${isKnown} == (confirmed|snat) ct mark & ${ownMark} != ${ownMark}`;

/** Forwarding of IPv6 has switches of its own, which are left as they are. */
const ipv4 = 'meta nfproto ipv4';

/** The rules for what a host forwards out of its tunnel, and into it. */
export function forwardRulesOf(link: string) {
  const [into, outOf] = [`oifname "${link}"`, `iifname "${link}"`];
  const across = `${outOf} ${into}`;
  return {
    /** Lowers the MSS of TCP connections that go into the tunnel, or come out of it, to what fits through it. */
    clampMss: (direction: 'in' | 'out') =>
      forward(
        'clamp-mss',
        `${direction === 'out' ? into : outOf} tcp flags & (syn|rst) == syn tcp option maxseg size set rt mtu`,
      ),
    /**
     * Refuses what another connector hands on for a peer that does not answer here either: two that both do not hear it would
     * send its packets to each other until these are too old.
     */
    refuseDetour: (ends: RuleEnds) =>
      forward('refuse-detour', `${across} ${writeEnds(ends)} reject with icmpx host-unreachable`),
    /** Ends connections that began while their source was masqueraded, and is not any more, or the other way round. */
    refuseStale: (masquerade: boolean, ends: RuleEnds) =>
      forward('refuse-stale', `${writeOrigin(ends)} ${masquerade ? knownAsItIs : knownFromHere} drop`),
    /** Lets in what was sent to this host itself, and is handed on by another program's rule: a container's published port. */
    acceptPublished: (at: Address) => forward('accept-published', `${outOf} ${writePublished(at)} accept`),
    acceptPublishedAnswers: (at: Address) =>
      forward('accept-published-answers', `${into} ct direction reply ${writePublished(at)} accept`),
    /** Lets through the answers in connections that began between these: out of the tunnel, into it, or from peer to peer. */
    acceptAnswers: (direction: 'in' | 'out' | 'across', ends: RuleEnds) => {
      const by = { in: outOf, out: into, across }[direction];
      return forward('accept-answers', `${by} ct direction reply ${writeOrigin(ends)} accept`);
    },
    /** Lets in the answers in connections that began behind this host, and to which another program gave its address: a container's. */
    acceptLocalAnswers: (outside: Links) => {
      const except = outside.length === 0 ? '' : ` oifname != ${writeLinks(outside)}`;
      return forward('accept-local-answers', `${outOf}${except} ct direction reply ${knownFromElsewhere} accept`);
    },
    /** Refuses the other answers that come out of the tunnel, or go into it. */
    refuseAnswers: (direction: 'in' | 'out') =>
      forward('refuse-answers', `${direction === 'in' ? outOf : into} ct direction reply drop`),
    /** Lets through what goes from one peer to another. */
    acceptRelayed: (ends: RuleEnds) => forward('accept-relayed', `${across} ${writeEnds(ends)} accept`),
    /** Lets through what goes from the network to the LAN. */
    acceptInward: (ends: RuleEnds) => forward('accept-inward', `${outOf} ${writeEnds(ends)} accept`),
    /** Lets through what goes from the network out by the default routes of this host, to none of the special ranges. */
    acceptExit: ({ by, except, ...ends }: Exit) =>
      forward(
        'accept-exit',
        `${outOf} oifname ${writeLinks(by)} ${writeEnds(ends)} ${writeOne('daddr', except, '!= ')} accept`,
      ),
    /** Lets through the answers to that. */
    acceptExitAnswers: ({ by, except, ...ends }: Exit) => {
      const origin = `${writeOrigin(ends)} ct original ${writeOne('daddr', except, '!= ')}`;
      return forward('accept-exit-answers', `iifname ${writeLinks(by)} ${into} ct direction reply ${origin} accept`);
    },
    /** Refuses what else comes from the tunnel: a peer reaches what is advertised, not all that this host could forward to. */
    refuseRest: () => forward('refuse-rest', `${outOf} reject with icmpx admin-prohibited`),
    /** Lets through what the LAN sends into the network, by the interfaces that its routes use. */
    acceptOutward: (by: Links, ends: RuleEnds) =>
      forward('accept-outward', `iifname ${writeLinks(by)} ${into} ${writeEnds(ends)} accept`),
    /** Refuses what bears an address of the network, or of a LAN, and came by another interface. */
    refuseSpoofed: (from: readonly Prefix[]) => forward('refuse-spoofed', `${into} ${writeOne('saddr', from)} drop`),
    /** Refuses the neighbours of this host: what else comes by these interfaces. */
    refuseOutside: (by: Links) => forward('refuse-outside', `iifname ${writeLinks(by)} ${into} drop`),
    /** Ends connections into the tunnel that were masqueraded here, and that no route lets through any more. */
    refuseKnown: () => forward('refuse-known', `${into} ${knownFromHere} drop`),
    /** Gives packets from one peer to another this peer's address. */
    masqueradeRelayed: (from: readonly Prefix[], except: Address) =>
      // No name of the interface that a packet came by is known any more where masquerading is done.
      masquerading(
        'masquerade-relayed',
        `${into} ${writeOne('saddr', from)} ${protocolOf(except)} saddr != ${except} masquerade`,
      ),
    /** Gives packets from the tunnel to the LAN this host's address, so that the LAN needs no route back. */
    masquerade: (ends: RuleEnds) =>
      masquerading('masquerade', `${writeEnds(ends)} oifname != "${link}" ${markOwn} masquerade`),
    /** Gives packets from the LAN into the tunnel this peer's address. */
    masqueradeOutward: (ends: RuleEnds) =>
      masquerading('masquerade-outward', `${into} ${writeEnds(ends)} ${markOwn} masquerade`),
    /** Leaves answers to the rules before masquerading. */
    acceptLeavingAnswers: () => leaving('accept-leaving-answers', `${into} ct direction reply accept`),
    /** Refuses what goes into the tunnel, and bears after masquerading neither an address of this host nor one of these. */
    refuseForeign: (from: readonly Prefix[]) =>
      leaving('refuse-foreign', `${into} ${writeOne('saddr', from, '!= ')} fib saddr type != local drop`),
  };
}

interface Exit extends RuleEnds {
  readonly by: Links;
  readonly except: readonly Prefix[];
}

/**
 * What comes in by interfaces that forward for this connector alone, and would leave by one that was there before: answers to
 * connections that began elsewhere pass, and nothing else.
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

function masquerading(name: string, text: string): PacketRule {
  return { name, chain: 'postrouting', text };
}

function leaving(name: string, text: string): PacketRule {
  return { name, chain: 'leaving', text };
}

/** The ends of a connection as its first packet had them, whichever way a packet goes and whatever addresses it bears now. */
function writeOrigin({ from, to }: RuleEnds): string {
  return `ct original ${writeOne('saddr', from)} ct original ${writeOne('daddr', to)}`;
}

function writePublished(at: Address): string {
  return `ct status dnat ct original ${protocolOf(at)} daddr ${at}`;
}
