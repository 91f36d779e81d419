import { digestOf } from '../../crypto/keys.ts';
import type { NetworkMap, Peer, PeerFailure, PeerId } from '../../map/model.ts';

/** The inputs of spreading: the network, and the failures that one host observed. */
export interface SpreadView {
  readonly map: Pick<NetworkMap, 'spread'>;
  readonly failed: readonly PeerFailure[];
}

/**
 * Returns the connectors over which the hosts of a network spread: the healthy ones with the
 * priority of the first in rank. Empty if the network does not spread hosts, if the first is not
 * healthy, if there is only one, or if one of them does not masquerade: without masquerading, a LAN
 * answers through one connector alone.
 *
 * @param ranked the connectors of one route, best first
 */
export function findEquals({ map, failed }: SpreadView, ranked: readonly Peer[]): readonly Peer[] {
  const [first] = ranked;
  const ill = new Set(failed.map(({ peer }) => peer));
  if (!map.spread || first === undefined || ill.has(first.id)) return [];
  const equals = ranked.filter(({ id, priority = 0 }) => !ill.has(id) && priority === (first.priority ?? 0));
  return equals.length > 1 && equals.every(({ masquerades }) => masquerades) ? equals : [];
}

/**
 * Orders the connectors of a route for one host. Among equals, each host has its own order, by
 * rendezvous hashing: a connector that dies moves only its own hosts, and one that joins takes only
 * its share.
 */
export function spreadHosts(view: SpreadView, host: PeerId, ranked: readonly Peer[]): readonly Peer[] {
  const equals = findEquals(view, ranked);
  if (equals.length === 0) return ranked;
  const weights = new Map(equals.map((peer) => [peer, weigh(host, peer.id)]));
  const weightOf = (peer: Peer) => weights.get(peer) ?? '';
  const own = equals.toSorted((one, other) => (weightOf(one) > weightOf(other) ? -1 : 1));
  return [...own, ...ranked.filter((peer) => !weights.has(peer))];
}

/** Must not change between versions: hosts would move. The ids 1 and "1" get different weights. */
function weigh(host: PeerId, connector: PeerId): string {
  return digestOf(JSON.stringify([host, connector]), 16);
}
