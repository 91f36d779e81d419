import type { PublicKey } from '../crypto/keys.ts';
import type { ActualPeer } from '../host-state/actual.ts';
import type { NetworkMap } from '../map/model.ts';
import { hostPrefix } from '../net/cidr.ts';

/** The state of a peer, derived only from WireGuard's own table. */
export type SessionState = 'connected' | 'idle' | 'stale' | 'never';

/** Seconds until a session's keys are refused (REJECT_AFTER_TIME, wireguard/messages.h). */
const rejectAfter = 180;

/**
 * Seconds after which a session in use has a newer handshake: keys are renewed after 120 s
 * (REKEY_AFTER_TIME), in up to 15 s, as in contrib/reresolve-dns.sh of wireguard-tools.
 */
const renewedWithin = 135;

/** True if the last handshake is so recent that the peer's endpoint is valid. */
export function isRenewed(latestHandshake: number | null, now: number): boolean {
  return latestHandshake !== null && now - latestHandshake <= renewedWithin;
}

/** True if the last handshake still carries a session. */
export function isFresh(latestHandshake: number | null, now: number): boolean {
  return latestHandshake !== null && now - latestHandshake <= rejectAfter;
}

/** Formats the age of a handshake or request in seconds, such as `5 min ago`. */
export function describeAge(seconds: number): string {
  return `${describeDuration(seconds)} ago`;
}

export function describeDuration(seconds: number): string {
  if (seconds < 120) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

/** Seconds for a handshake, with a retry after 5 s (REKEY_TIMEOUT). */
const handshakeWithin = 15;

/**
 * Seconds after which keepalives have renewed a session. The end that initiated the session renews
 * it when it sends a keepalive after 120 s or receives one after 165 s (keep_key_fresh in send.c
 * and receive.c). The first keepalive after {@link rejectAfter} renews it in any case.
 */
function renewedByKeepalives(keepalive: number): number {
  return rejectAfter + keepalive + handshakeWithin;
}

/**
 * Returns the state of a peer; `now` is in seconds since the epoch:
 * - `connected`: the session is valid and the peer answers.
 * - `stale`: the peer does not answer, or keepalives should have renewed the session and did not.
 * - `idle`: there was no reason to renew the session yet.
 * - `never`: no handshake has completed.
 *
 * @param silentAt bytes received when the peer's silence was detected; any further byte ends it
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

/** Returns, by key, the relay of each peer that is not in `reached`, the directly reached peers. */
export function findRelays(
  { cidr, peers }: Pick<NetworkMap, 'cidr' | 'peers'>,
  reached: readonly Pick<ActualPeer, 'publicKey' | 'allowedIps'>[],
): ReadonlyMap<PublicKey, PublicKey> {
  const owners = new Map(
    reached.flatMap(({ publicKey, allowedIps }) => allowedIps.map((prefix) => [prefix, publicKey])),
  );
  const direct = new Set(reached.map(({ publicKey }) => publicKey));
  return new Map(
    peers.flatMap(({ publicKey, address }) => {
      const own = owners.get(hostPrefix(address)) ?? null;
      const owner = own ?? (direct.has(publicKey) ? null : owners.get(cidr));
      return owner == null || owner === publicKey ? [] : [[publicKey, owner]];
    }),
  );
}
