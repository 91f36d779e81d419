import { digestOf } from '../../crypto/keys.ts';
import type { NetworkMap, Peer, PeerFailure, PeerId } from '../../map/model.ts';

/** Connectors of one route, the first in rank first, from the view of one host. */
export interface SpreadView {
  readonly map: Pick<NetworkMap, 'spread'>;
  readonly failed: readonly PeerFailure[];
}

/**
 * Returns the connectors over which the hosts of a network spread: those that are equal to the
 * first in rank, if all of them are healthy and masquerade. Else empty. The source of a connection
 * without masquerading would reach the LAN by one connector and be answered by another.
 */
export function findEquals({ map, failed }: SpreadView, ranked: readonly Peer[]): readonly Peer[] {
  const [first] = ranked;
  if (!map.spread || first === undefined) return [];
  const ill = new Set(failed.map(({ peer }) => peer));
  const equals = ranked.filter(
    ({ id, priority = 0 }) => !ill.has(id) && !ill.has(first.id) && priority === (first.priority ?? 0),
  );
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

/** The same in every version. Distinguishes the ids 1 and "1". */
function weigh(host: PeerId, connector: PeerId): string {
  return digestOf(JSON.stringify([host, connector]), 16);
}
