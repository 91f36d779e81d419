import type { PublicKey } from '../crypto/keys.ts';
import { isFresh } from '../health/peer-health.ts';
import type { ActualPeer, Device } from '../host-state/actual.ts';
import type { NetworkMap, Peer, PeerId } from '../map/model.ts';
import { hostPrefix } from '../net/cidr.ts';
import { mayHavePath } from '../routing/topology/via-connectors.ts';
import { isForProbes, probePrefixOf } from './probe-address.ts';

/**
 * Finds the direct paths in use in WireGuard's table, so that they survive a restart, and every
 * process plans with them: peers without an endpoint in the map that have both their own address
 * and their probe address. Keepalives renew the session of a path: without one, the path is dead,
 * and no daemon has ended it. Sorted as in the map.
 *
 * @param now seconds since the epoch
 */
export function findDevicePaths(device: Device | null, map: NetworkMap, self: Peer, now: number): readonly PeerId[] {
  const { id } = map;
  const probed = new Map(
    device?.peers
      .filter(({ allowedIps, latestHandshake }) => allowedIps.some(isForProbes) && isFresh(latestHandshake, now))
      .map((each) => [each.publicKey, each]),
  );
  if (id === null || probed.size === 0) return [];
  return map.peers
    .filter((peer) => {
      const allowedIps = probed.get(peer.publicKey)?.allowedIps ?? [];
      const marks = [hostPrefix(peer.address), probePrefixOf(id, peer.id)];
      return mayHavePath(peer, self, map) && marks.every((prefix) => allowedIps.includes(prefix));
    })
    .map((peer) => peer.id);
}

/** Bytes that a peer under trial sends without a handshake, at most: see attempt.ts. */
const mostTrialBytes = 1_024;
/** Seconds from a handshake until the pair switches, or gives up. */
const trialSeconds = 60;

/**
 * True if the peer is under trial: an attempt of the daemon adds and removes it, and no plan does.
 * False for a peer that an earlier daemon left in the table: the next plan removes it.
 *
 * @param now seconds since the epoch
 */
export function isTrial(peer: ActualPeer, triable: ReadonlySet<PublicKey>, now: number): boolean {
  const { publicKey, allowedIps, latestHandshake, txBytes } = peer;
  if (!triable.has(publicKey) || allowedIps.length === 0 || !allowedIps.every(isForProbes)) return false;
  return latestHandshake === null ? txBytes <= mostTrialBytes : now - latestHandshake <= trialSeconds;
}
