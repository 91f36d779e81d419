import type { PublicKey } from '../../crypto/keys.ts';
import type { ActualPeer } from '../../host-state/actual.ts';
import { isSilent, type Traffic, trackTraffic } from '../traffic.ts';

/** The activity of a peer, derived from its counters. Times are in seconds of a monotonic clock. */
export interface PeerActivity {
  readonly traffic: Traffic;
  /** When an increase of the sent bytes was last observed. */
  readonly sentAt: number;
  /** Bytes per second; null before the first measurement. */
  readonly rates: ActivityRates | null;
  /** The start of the next rate measurement. */
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

/** The shortest measurement of a rate in seconds, as passes may follow each other closely. */
const measuredOver = 20;

/** Seconds for which sent bytes show use: handshakes are retried for 90 s, sessions last 180 s. */
const inUseFor = 180;

/** Adds an observation of the counters to the activity of all peers of an interface. */
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
  // Counters decrease when a peer is removed and added again.
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

/** True if bytes were sent to the peer so recently that its silence is significant. */
export function isInUse({ sentAt }: PeerActivity, now: number): boolean {
  return now - sentAt <= inUseFor;
}

/** True if the peer should have answered what was sent recently. */
export function isUnanswered(activity: PeerActivity, now: number): boolean {
  return isInUse(activity, now) && isSilent(activity.traffic, now);
}
