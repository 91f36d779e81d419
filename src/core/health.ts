import type { ActualPeer } from './actual.ts';

/** How a peer is, told from WireGuard's own table alone. */
export type PeerState = 'connected' | 'idle' | 'stale' | 'never';

/** Seconds after which a session's keys are refused (REJECT_AFTER_TIME, drivers/net/wireguard/messages.h). */
const rejectAfter = 180;

/** True when the last handshake still carries a session. */
export function isFresh(latestHandshake: number | null, now: number): boolean {
  return latestHandshake !== null && now - latestHandshake <= rejectAfter;
}

/**
 * Tells a peer's state from its last handshake: `connected` while the session lives, `stale` when keepalives should have
 * renewed it and did not, `idle` when nobody had reason to, `never` when there was no handshake at all.
 *
 * @param now seconds since the epoch
 */
export function judgePeer(peer: Pick<ActualPeer, 'latestHandshake' | 'keepalive'>, now: number): PeerState {
  if (peer.latestHandshake === null) return 'never';
  if (isFresh(peer.latestHandshake, now)) return 'connected';
  return peer.keepalive === null ? 'idle' : 'stale';
}
