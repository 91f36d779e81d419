import type { ActualPeer } from '../host-state/actual.ts';

/** The state of a peer, from WireGuard's own table alone. */
export type SessionState = 'connected' | 'idle' | 'stale' | 'never';

/** Seconds after which a session's keys are refused (REJECT_AFTER_TIME, drivers/net/wireguard/messages.h). */
const rejectAfter = 180;

/**
 * Seconds after which a session in use has a newer handshake: keys are renewed after 120 s (REKEY_AFTER_TIME) and the
 * renewal is given 15 s, as in contrib/reresolve-dns.sh of wireguard-tools.
 */
const renewedWithin = 135;

/** True when the peer was heard so lately that where it is found is where it is. */
export function isRenewed(latestHandshake: number | null, now: number): boolean {
  return latestHandshake !== null && now - latestHandshake <= renewedWithin;
}

/** True when the last handshake still carries a session. */
export function isFresh(latestHandshake: number | null, now: number): boolean {
  return latestHandshake !== null && now - latestHandshake <= rejectAfter;
}

/** Seconds for a handshake, tried once more after 5 s (REKEY_TIMEOUT). */
const handshakeWithin = 15;

/**
 * Seconds after which keepalives have renewed a session. Keepalives that are sent after 120 s, or received after 165 s, make the end
 * that began the session renew it (keep_key_fresh in send.c and receive.c). The first after {@link rejectAfter} does so in any case.
 */
function renewedByKeepalives(keepalive: number): number {
  return rejectAfter + keepalive + handshakeWithin;
}

/**
 * Tells a peer's state: `connected` while the session lives and what we send is answered, `stale` when it does not answer or
 * when keepalives should have renewed the session and did not, `idle` when nothing had reason to renew it yet, `never` when there
 * was no handshake at all.
 *
 * @param now seconds since the epoch
 * @param silentAt bytes received when it was noticed that the peer does not answer; the first byte more undoes it
 */
export function peerStateOf(
  peer: Pick<ActualPeer, 'latestHandshake' | 'keepalive' | 'rxBytes'>,
  now: number,
  silentAt?: number,
): SessionState {
  if (peer.latestHandshake === null) return 'never';
  if (peer.rxBytes === silentAt) return 'stale';
  if (isFresh(peer.latestHandshake, now)) return 'connected';
  if (peer.keepalive === null) return 'idle';
  return now - peer.latestHandshake <= renewedByKeepalives(peer.keepalive) ? 'idle' : 'stale';
}
