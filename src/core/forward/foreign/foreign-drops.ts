import type { Prefix } from '../../net/cidr.ts';
import type { FilterTable, NamedSet, Unread } from './chain.ts';
import { nameTable } from './describe-drop.ts';
import { type Bypass, findBypasses } from './find-bypasses.ts';
import { type ForwardDrop, findForwardDrops } from './find-drops.ts';
import { findInboundDrop, type InboundDrop } from './find-inbound-drop.ts';
import type { InboundPath } from './inbound-path.ts';
import type { ForwardPath } from './path.ts';
import { isReloading } from './remedy.ts';

/** The paths that a network needs here and that packet rules of other programs may close. */
export interface PacketPaths {
  readonly forward: readonly ForwardPath[];
  /** All inbound paths of a first packet from another host. */
  readonly inbound: readonly InboundPath[];
  /** The prefixes in a closed network, to find what bypasses its rules; absent in an open one. */
  readonly inside?: readonly Prefix[];
}

/** The packets that such rules certainly drop. */
export interface ForeignDrops {
  readonly forward: readonly ForwardDrop[];
  readonly inbound: InboundDrop | null;
  /** Rules that could not be read and may drop more; absent without any. */
  readonly unread?: UnreadRules;
  /** Rules that keep packets from the filter of a closed network; absent without a search. */
  readonly bypasses?: readonly Bypass[];
}

/** Unread rules, by the kind of paths that they affect. */
export interface UnreadRules {
  readonly forward: readonly Unread[];
  readonly inbound: readonly Unread[];
}

/** A null table is of iptables-legacy and unreadable. `link` is the interface of the tunnel. */
export function findForeignDrops(
  tables: readonly (FilterTable | null)[],
  link: string,
  paths: PacketPaths,
): ForeignDrops {
  const lasting = tables.filter((table) => table !== null).filter((table) => !isReloading(table));
  const [forwardSets, inboundSets] = [new Set<NamedSet>(), new Set<NamedSet>()];
  const forward = findForwardDrops(lasting, link, paths.forward, (set) => forwardSets.add(set));
  const inbound = findInboundDrop(lasting, paths.inbound, (set) => inboundSets.add(set));
  const legacy: readonly Unread[] = tables.includes(null) ? [{ kind: 'legacy' }] : [];
  const unread = { forward: [...forwardSets, ...legacy], inbound: [...inboundSets, ...legacy] };
  return {
    ...{ forward, inbound },
    ...(unread.forward.length + unread.inbound.length > 0 && { unread }),
    ...(paths.inside && { bypasses: findBypasses(lasting, link, paths.inside) }),
  };
}

/**
 * Returns the routes to or from which certainly no packet passes this host, with the reason. The
 * range of the network is among them if no packet passes from peer to peer.
 */
export function findDroppedRoutes(
  paths: readonly ForwardPath[],
  drops: readonly ForwardDrop[],
): ReadonlyMap<Prefix, string> {
  const dropped = new Map<Prefix, string>();
  const whole = drops.filter(({ some, letsPublished = false }) => some.length === 0 && !letsPublished);
  const find = (path: ForwardPath) => whole.find((drop) => drop.paths.some((each) => isSame(each, path)));
  const [out, back] = [byRoute(paths, 'new', 'to'), byRoute(paths, 'established', 'from')];
  for (const [route, pathsBetween] of [...out, ...back]) {
    const [first, ...others] = pathsBetween.map(find);
    if (first === undefined || others.includes(undefined)) continue;
    dropped.set(route, `${nameTable(first)} drops what this host forwards there: ${first.reason}`);
  }
  return dropped;
}

function byRoute(paths: readonly ForwardPath[], state: ForwardPath['state'], end: 'from' | 'to') {
  const pathsBetween = paths.filter((path) => path.state === state);
  return Map.groupBy(pathsBetween, (path) => path.route ?? path[end]);
}

const isSame = (a: ForwardPath, b: ForwardPath) =>
  a.iif === b.iif && a.oif === b.oif && a.from === b.from && a.to === b.to && a.state === b.state;
