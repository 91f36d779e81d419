import type { ActualPeer } from './actual.ts';

/** What became of a peer's counters from look to look; times in seconds of a clock that never jumps. */
export interface Traffic {
  readonly rxBytes: number;
  readonly txBytes: number;
  /** When it was first seen that we sent since it was last heard; null while nothing waits for an answer. */
  readonly askedAt: number | null;
}

/**
 * Seconds within which a peer that received something is heard: it sends a keepalive after 10 s when it has nothing else to
 * send (KEEPALIVE_TIMEOUT), and a handshake is tried again after 5 s (REKEY_TIMEOUT, drivers/net/wireguard/messages.h).
 */
const answersWithin = 15;

/** The traffic of a peer after one more look at it. */
export function followTraffic(before: Traffic | undefined, { rxBytes, txBytes }: ActualPeer, now: number): Traffic {
  // Counters that grew smaller are those of a peer that was taken out and added again.
  const known = before && txBytes >= before.txBytes ? before : undefined;
  if (known === undefined || rxBytes !== known.rxBytes) return { rxBytes, txBytes, askedAt: null };
  const asked = txBytes > known.txBytes ? now : null;
  return { rxBytes, txBytes, askedAt: known.askedAt ?? asked };
}

/** True when the peer was sent to and should have been heard by now, whatever a firewall behind it drops. */
export function isSilent({ askedAt }: Traffic, now: number): boolean {
  return askedAt !== null && now - askedAt > answersWithin;
}
