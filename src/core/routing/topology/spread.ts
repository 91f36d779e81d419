import { digestOf } from '../../crypto/keys.ts';
import type { Selector } from '../../map/access-rules.ts';
import type { NetworkMap, Peer, PeerFailure, PeerId } from '../../map/model.ts';
import { covers, isDefaultRoute, overlaps, type Prefix } from '../../net/cidr.ts';

/** The inputs of spreading: the network, and the failures that one host observed. */
export interface SpreadView {
  readonly map: Pick<NetworkMap, 'spread' | 'rules'>;
  readonly failed: readonly PeerFailure[];
}

/**
 * Returns the connectors over which the hosts of a network spread: the healthy ones with the
 * priority of the first in rank. Empty if the network does not spread hosts, if the first is not
 * healthy, if there is only one, or if one of them does not masquerade: without masquerading, a LAN
 * answers through one connector alone. Also empty if a rule lets the LAN begin connections: their
 * source is kept, and each host accepts it from one connector alone.
 *
 * @param ranked the connectors of the route, best first
 */
export function findEquals({ map, failed }: SpreadView, route: Prefix, ranked: readonly Peer[]): readonly Peer[] {
  const [first] = ranked;
  const ill = new Set(failed.map(({ peer }) => peer));
  if (!map.spread || first === undefined || ill.has(first.id) || mayBegin(map, route)) return [];
  const equals = ranked.filter(({ id, priority = 0 }) => !ill.has(id) && priority === (first.priority ?? 0));
  return equals.length > 1 && equals.every(({ masquerades }) => masquerades) ? equals : [];
}

/**
 * Orders the connectors of a route for one host. Among equals, each host has its own order, by
 * rendezvous hashing: a connector that dies moves only its own hosts, and one that joins takes only
 * its share.
 */
export function spreadHosts(view: SpreadView, route: Prefix, host: PeerId, ranked: readonly Peer[]): readonly Peer[] {
  const equals = findEquals(view, route, ranked);
  if (equals.length === 0) return ranked;
  const weights = new Map(equals.map((peer) => [peer, weigh(host, peer.id)]));
  const weightOf = (peer: Peer) => weights.get(peer) ?? '';
  const own = equals.toSorted((one, other) => (weightOf(one) > weightOf(other) ? -1 : 1));
  return [...own, ...ranked.filter((peer) => !weights.has(peer))];
}

/** True if a rule of a closed network lets the LAN of a route begin connections to elsewhere. */
function mayBegin({ rules }: SpreadView['map'], route: Prefix): boolean {
  if (rules === undefined || isDefaultRoute(route)) return false;
  const isFrom = (selector: Selector) =>
    selector.kind === 'any' || ('prefix' in selector && overlaps(selector.prefix, route));
  const isElsewhere = (selector: Selector) =>
    selector.kind !== 'gone' && !('prefix' in selector && covers(route, selector.prefix));
  return rules.rules.some(({ from, to }) => from.some(isFrom) && to.some(isElsewhere));
}

/** Must not change between versions: hosts would move. The ids 1 and "1" get different weights. */
function weigh(host: PeerId, connector: PeerId): string {
  return digestOf(JSON.stringify([host, connector]), 16);
}
