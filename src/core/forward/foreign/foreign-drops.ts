import type { FilterTable, NamedSet } from './chain.ts';
import { type ForwardDrop, findForwardDrops } from './find-drops.ts';
import { findInboundDrop, type InboundDrop } from './find-inbound-drop.ts';
import type { InboundPath } from './inbound-path.ts';
import type { ForwardPath } from './path.ts';

/** The ways of packets that a network needs on this host, and that packet rules of other programs may close. */
export interface PacketPaths {
  readonly forward: readonly ForwardPath[];
  /** All ways in of a first packet from another host. */
  readonly inbound: readonly InboundPath[];
}

/** What such rules surely drop. */
export interface ForeignDrops {
  readonly forward: readonly ForwardDrop[];
  readonly inbound: InboundDrop | null;
  /** Sets of nft that were not read, and without which nothing is known of other drops; absent where there are none. */
  readonly unread?: UnreadSets;
}

/** The sets by the paths for which they count. */
export interface UnreadSets {
  readonly forward: readonly NamedSet[];
  readonly inbound: readonly NamedSet[];
}

/** Finds what the tables of other programs drop; `link` is the interface of the tunnel. */
export function findForeignDrops(tables: readonly FilterTable[], link: string, ways: PacketPaths): ForeignDrops {
  const unread = { forward: new Set<NamedSet>(), inbound: new Set<NamedSet>() };
  const forward = findForwardDrops(tables, link, ways.forward, (set) => unread.forward.add(set));
  const inbound = findInboundDrop(tables, ways.inbound, (set) => unread.inbound.add(set));
  if (unread.forward.size + unread.inbound.size === 0) return { forward, inbound };
  return { forward, inbound, unread: { forward: [...unread.forward], inbound: [...unread.inbound] } };
}
