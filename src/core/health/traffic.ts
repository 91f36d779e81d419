import type { PublicKey } from '../crypto/keys.ts';
import type { ActualPeer } from '../host-state/actual.ts';

/** The traffic of a peer, derived from its counters. Times are in seconds of a monotonic clock. */
export interface Traffic {
  readonly rxBytes: number;
  readonly txBytes: number;
  readonly keepalive: number | null;
  /** When new bytes of the peer were last observed. */
  readonly heardAt: number;
  /** The bytes sent by then. */
  readonly sentBytes: number;
  /** When sent bytes that need an answer were first observed since then; null without any. */
  readonly askedAt: number | null;
}

/**
 * Seconds within which a peer responds to received data: with a keepalive after 10 s
 * (KEEPALIVE_TIMEOUT), or a retried handshake after 5 s (REKEY_TIMEOUT,
 * drivers/net/wireguard/messages.h).
 */
const answersWithin = 15;

/** Bytes of a keepalive: a data message without data (struct message_data and tag, messages.h). */
const keepaliveSize = 32;
/** A keepalive after 10 s, another for packets meanwhile (wg_expired_send_keepalive, timers.c). */
const mostAnswers = 2;

/** Adds an observation to the traffic of a peer. */
export function trackTraffic(before: Traffic | undefined, peer: TrafficCounters, now: number): Traffic {
  const { rxBytes, txBytes, keepalive } = peer;
  // Counters decrease when a peer is removed and added again.
  const known = before && txBytes >= before.txBytes && keepalive === before.keepalive ? before : undefined;
  if (known === undefined || rxBytes !== known.rxBytes) {
    return { rxBytes, txBytes, keepalive, heardAt: now, sentBytes: txBytes, askedAt: null };
  }
  const asked = areKeepalives(txBytes - known.sentBytes, now - known.heardAt, keepalive) ? null : now;
  return { ...known, txBytes, askedAt: known.askedAt ?? asked };
}

type TrafficCounters = Pick<ActualPeer, 'rxBytes' | 'txBytes' | 'keepalive'>;

/**
 * True if the bytes sent within `seconds` can be only keepalives. WireGuard answers data and
 * handshakes, but no keepalive (wg_packet_consume_data_done in receive.c). Only one of two ends
 * sends keepalives, because each postpones those of the other.
 */
export function areKeepalives(bytes: number, seconds: number, keepalive: number | null): boolean {
  const most = mostAnswers + (keepalive === null ? 0 : 1 + Math.floor(seconds / keepalive));
  return bytes % keepaliveSize === 0 && bytes / keepaliveSize <= most;
}

/** True if the peer should have responded by now. A firewall behind the peer does not matter. */
export function isSilent({ askedAt }: Traffic, now: number): boolean {
  return askedAt !== null && now - askedAt > answersWithin;
}

/** The rate at which a peer sends to this host, in bytes per second. */
export interface Inflow {
  readonly publicKey: PublicKey;
  readonly rate: number;
}

/**
 * Bytes per second of a peer that does not use this host. A refused liveness probe costs 96 bytes,
 * an accepted probe four such packets: 500 bytes per second at three probes in two seconds. A
 * keepalive has 32 bytes, a handshake 148 (drivers/net/wireguard/messages.h). Each peer is measured
 * separately, so that a hundred idle peers still count as idle.
 */
const idleRate = 1_000;

/** Returns the peers above the idle rate, highest first; `seconds` are between the observations. */
export function measureInflow(
  before: readonly ActualPeer[],
  after: readonly ActualPeer[],
  seconds: number,
): readonly Inflow[] {
  const known = new Map(before.map((peer) => [peer.publicKey, peer.rxBytes]));
  return after
    .map(({ publicKey, rxBytes }) => {
      const earlier = known.get(publicKey) ?? 0;
      // Counters decrease when a peer is removed and added again.
      return { publicKey, rate: (rxBytes < earlier ? rxBytes : rxBytes - earlier) / seconds };
    })
    .filter(({ rate }) => rate > idleRate)
    .sort((a, b) => b.rate - a.rate);
}
