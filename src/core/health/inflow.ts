import type { PublicKey } from '../crypto/keys.ts';
import type { ActualPeer } from '../host-state/actual.ts';

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
