import type { PublicKey } from '../crypto/keys.ts';
import type { ActualPeer } from '../host-state/actual.ts';

/** What became of a peer's counters from look to look; times in seconds of a clock that never jumps. */
export interface Traffic {
  readonly rxBytes: number;
  readonly txBytes: number;
  readonly keepalive: number | null;
  /** When something new of the peer was last seen. */
  readonly heardAt: number;
  /** The bytes sent by then. */
  readonly sentBytes: number;
  /** When it was first seen that we sent something since that must be answered; null while nothing waits for an answer. */
  readonly askedAt: number | null;
}

/**
 * Seconds within which a peer that received something is heard: it sends a keepalive after 10 s when it has nothing else to
 * send (KEEPALIVE_TIMEOUT), and a handshake is tried again after 5 s (REKEY_TIMEOUT, drivers/net/wireguard/messages.h).
 */
const answersWithin = 15;

/** Bytes of a keepalive on the wire: a data message without data (struct message_data and the tag, messages.h). */
const keepaliveSize = 32;
/**
 * Keepalives that answer what was received before: one after 10 s, and one more for what came in these 10 s
 * (wg_expired_send_keepalive in timers.c).
 */
const mostAnswers = 2;

/** The traffic of a peer after one more look at it. */
export function trackTraffic(before: Traffic | undefined, peer: TrafficCounters, now: number): Traffic {
  const { rxBytes, txBytes, keepalive } = peer;
  // Counters that grew smaller are those of a peer that was taken out and added again.
  const known = before && txBytes >= before.txBytes && keepalive === before.keepalive ? before : undefined;
  if (known === undefined || rxBytes !== known.rxBytes) {
    return { rxBytes, txBytes, keepalive, heardAt: now, sentBytes: txBytes, askedAt: null };
  }
  const asked = areKeepalives(txBytes - known.sentBytes, now - known.heardAt, keepalive) ? null : now;
  return { ...known, txBytes, askedAt: known.askedAt ?? asked };
}

type TrafficCounters = Pick<ActualPeer, 'rxBytes' | 'txBytes' | 'keepalive'>;

/**
 * True when what was sent within `seconds` can be keepalives alone. WireGuard answers data and handshakes, but no keepalive
 * (wg_packet_consume_data_done in receive.c): of two ends only one sends any, as each postpones those of the other.
 */
function areKeepalives(bytes: number, seconds: number, keepalive: number | null): boolean {
  const most = mostAnswers + (keepalive === null ? 0 : 1 + Math.floor(seconds / keepalive));
  return bytes % keepaliveSize === 0 && bytes / keepaliveSize <= most;
}

/** True when the peer was sent to and should have been heard by now, whatever a firewall behind it drops. */
export function isSilent({ askedAt }: Traffic, now: number): boolean {
  return askedAt !== null && now - askedAt > answersWithin;
}

/** What a peer sends here, in bytes a second. */
export interface Inflow {
  readonly publicKey: PublicKey;
  readonly rate: number;
}

/**
 * Bytes a second that a peer sends without any use of this host. A question whether it lives costs 96 bytes where it is refused, and
 * four such packets where it is accepted: 500 at three questions in two seconds. A keepalive is 32 bytes, a handshake 148
 * (drivers/net/wireguard/messages.h). Each peer is measured by itself, so that a hundred idle ones are idle still.
 */
const idleRate = 1_000;

/**
 * Who sent more than small talk between two looks, the most first.
 *
 * @param seconds between the looks
 */
export function measureInflow(
  before: readonly ActualPeer[],
  after: readonly ActualPeer[],
  seconds: number,
): readonly Inflow[] {
  const known = new Map(before.map((peer) => [peer.publicKey, peer.rxBytes]));
  return after
    .map(({ publicKey, rxBytes }) => {
      const earlier = known.get(publicKey) ?? 0;
      // Counters that grew smaller are those of a peer that was taken out and added again.
      return { publicKey, rate: (rxBytes < earlier ? rxBytes : rxBytes - earlier) / seconds };
    })
    .filter(({ rate }) => rate > idleRate)
    .sort((a, b) => b.rate - a.rate);
}
