import type { PublicKey } from '../crypto/keys.ts';
import type { ActualPeer } from '../host-state/actual.ts';
import { isSilent, type Traffic, trackTraffic } from './traffic.ts';

/** What a peer's counters showed from look to look; times in seconds of a clock that never jumps. */
export interface PeerActivity {
  readonly traffic: Traffic;
  /** When more bytes were last seen to be sent. */
  readonly sentAt: number;
  /** Bytes a second; null before they could be measured. */
  readonly rates: ActivityRates | null;
  /** Where the next measurement of the rates begins. */
  readonly since: ActivityCounters;
}

interface ActivityRates {
  readonly rx: number;
  readonly tx: number;
}

interface ActivityCounters {
  readonly at: number;
  readonly rxBytes: number;
  readonly txBytes: number;
}

/** Seconds over which a rate is measured, at least: passes may follow each other closely. */
const measuredOver = 20;

/** Seconds for which what was sent shows that a peer is in use: a handshake is tried for 90 s, a session lives for 180 s. */
const inUseFor = 180;

/** The activity of all peers of an interface after one more look at their counters. */
export function trackActivity(
  before: ReadonlyMap<PublicKey, PeerActivity>,
  peers: readonly ActualPeer[],
  now: number,
): ReadonlyMap<PublicKey, PeerActivity> {
  return new Map(peers.map((peer) => [peer.publicKey, trackPeer(before.get(peer.publicKey), peer, now)]));
}

function trackPeer(before: PeerActivity | undefined, peer: ActualPeer, now: number): PeerActivity {
  const { rxBytes, txBytes } = peer;
  const traffic = trackTraffic(before?.traffic, peer, now);
  const counters = { at: now, rxBytes, txBytes };
  // Counters that grew smaller are those of a peer that was taken out and added again.
  if (before === undefined || rxBytes < before.since.rxBytes || txBytes < before.since.txBytes) {
    return { traffic, sentAt: txBytes > 0 ? now : Number.NEGATIVE_INFINITY, rates: null, since: counters };
  }
  const sentAt = txBytes > before.traffic.txBytes ? now : before.sentAt;
  const seconds = now - before.since.at;
  if (seconds < measuredOver) return { ...before, traffic, sentAt };
  const rate = (bytes: number) => Math.round(bytes / seconds);
  const rates = { rx: rate(rxBytes - before.since.rxBytes), tx: rate(txBytes - before.since.txBytes) };
  return { traffic, sentAt, rates, since: counters };
}

/** True where something was sent to the peer so lately that its silence tells something. */
export function isInUse({ sentAt }: PeerActivity, now: number): boolean {
  return now - sentAt <= inUseFor;
}

/** True where the peer should have answered what was sent lately. */
export function isUnanswered(activity: PeerActivity, now: number): boolean {
  return isInUse(activity, now) && isSilent(activity.traffic, now);
}
