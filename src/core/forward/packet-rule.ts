import { digestOf } from '../crypto/keys.ts';
import type { AccessFilter } from './access/lookups.ts';
import type { ExpiringRange } from './expiring-ranges.ts';

/** The packet rules of a host for one network, in the order in which they are applied. */
export interface Firewall {
  readonly link: string;
  readonly rules: readonly PacketRule[];
  /** The filter of a closed network; absent in an open one. */
  readonly access?: AccessFilter;
}

/** A packet rule in nft syntax (nft(8)). */
export interface PacketRule {
  /** The rule's name in its comment. */
  readonly name: string;
  readonly chain: Chain;
  readonly text: string;
  /** When the rule starts to refuse packets; absent for a rule that always applies. */
  readonly deadline?: Deadline;
}

/** Milliseconds since 1970 by the service's clock: of address ranges, or of the whole tunnel. */
export type Deadline = { readonly ranges: readonly ExpiringRange[] } | { readonly until: number };

export type Chain = keyof typeof chains;

/** The chains of our rules. Priorities are numbers: nft before 0.9.1 has no names for them. */
export const chains = {
  /** After conntrack (-200), before any program gives a packet another destination (-100). */
  arriving: 'type filter hook prerouting priority -150; policy accept;',
  /** Before any other program gives a packet another destination. */
  mapping: 'type nat hook prerouting priority -101; policy accept;',
  /** After that, and before the kernel decides whether a packet is for this host. */
  redirected: 'type filter hook prerouting priority -1; policy accept;',
  /** After redirections (-100), and before the kernel chooses a route. */
  returning: 'type filter hook prerouting priority -99; policy accept;',
  /** The kernel chooses the route again when a mark changes. */
  answering: 'type route hook output priority -150; policy accept;',
  /** Before the rules of other programs. Kernels before 5.9 cannot reject in prerouting. */
  probed: 'type filter hook input priority -150; policy accept;',
  forward: 'type filter hook forward priority -150; policy accept;',
  /** In a closed network, before our other rules: what they accept still needs an access rule. */
  judging: 'type filter hook forward priority -151; policy accept;',
  /** After probes were answered. */
  admitting: 'type filter hook input priority -149; policy accept;',
  /** After redirections by any program. */
  sending: 'type filter hook output priority 1; policy accept;',
  /** After a redirection, when the outgoing interface of a packet is known. */
  outgoing: 'type filter hook output priority 0; policy accept;',
  passing: 'type filter hook forward priority 0; policy accept;',
  /** Before any other program gives a packet another source. The first to do so decides. */
  sourcing: 'type nat hook postrouting priority 99; policy accept;',
  postrouting: 'type nat hook postrouting priority 100; policy accept;',
  /** After masquerading by any program. */
  leaving: 'type filter hook postrouting priority 101; policy accept;',
  /** After all packets that our other rules refuse. */
  departing: 'type filter hook postrouting priority 102; policy accept;',
} as const;

/** Identifies a rule, whose text nft prints differently: `cpn`, name, hash of text and deadline. */
export function commentOf({ name, chain, text, deadline }: PacketRule): string {
  const end = deadline === undefined ? '' : ` ${describeDeadline(deadline)}`;
  return `cpn ${name} ${digestOf(`${chains[chain]} ${text}${end}`, 4)}`;
}

/** Returns the sorted comments of chains without a hook, and the digest of all sets. */
export function accessComments({
  chains: unhooked,
  classes,
  identity,
}: Pick<AccessFilter, 'chains' | 'classes' | 'identity'>): { chain: string; comment: string }[] {
  return [
    ...[...unhooked, ...classes].flatMap(({ name, texts }) =>
      texts.map((text) => ({ chain: name, comment: accessComment(text) })),
    ),
    { chain: elementsChain, comment: `cpn elements ${identity}` },
  ];
}

/** An unused chain, whose only rule identifies the elements of the sets. */
export const elementsChain = 'identity';

export function accessComment(text: string): string {
  return `cpn access ${digestOf(text, 4)}`;
}

function describeDeadline(deadline: Deadline): string {
  if ('until' in deadline) return `${deadline.until}`;
  return deadline.ranges.map((range) => `${writeRange(range)} ${range.at}`).join();
}

export function writeRange({ first, last }: Pick<ExpiringRange, 'first' | 'last'>): string {
  return first === last ? first : `${first}-${last}`;
}
