import type { FilterTable } from './chain.ts';
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
}

/** Finds what the tables of other programs drop; `link` is the interface of the tunnel. */
export function findForeignDrops(tables: readonly FilterTable[], link: string, ways: PacketPaths): ForeignDrops {
  return { forward: findForwardDrops(tables, link, ways.forward), inbound: findInboundDrop(tables, ways.inbound) };
}
