import { isFresh } from '../../core/health/peer-health.ts';
import type { Peer } from '../../core/map/model.ts';
import { isReached } from '../../core/reconcile/mesh-loss.ts';
import type { Joined } from '../../store/state/state.ts';
import type { Tools } from '../tools.ts';
import type { Evaluation } from './evaluate-network.ts';

/** Milliseconds for an answer of one peer. */
const answerWithin = 1_500;
const mostPeers = 16;

/** A peer that answered before a change, and can confirm it by answering again. */
export interface ConfirmingPeer extends Pick<Peer, 'publicKey' | 'address'> {
  readonly latestHandshake: number | null;
  /** False if packets to it bypass the tunnel after the change: another host would answer. */
  readonly isReached: boolean;
}

/** Returns retained peers that had a fresh handshake before a change, at most `mostPeers`. */
export function findConfirmingPeers({ state, actual, desired }: Evaluation, now: number): readonly ConfirmingPeer[] {
  const stay = new Set(desired.config.peers.map((peer) => peer.publicKey));
  const heard = new Map(actual.device?.peers.map((peer) => [peer.publicKey, peer.latestHandshake]));
  return state.membership.map.peers
    .filter(({ publicKey }) => stay.has(publicKey) && isFresh(heard.get(publicKey) ?? null, now))
    .slice(0, mostPeers)
    .map(({ publicKey, address }) => {
      const latestHandshake = heard.get(publicKey) ?? null;
      return { publicKey, address, latestHandshake, isReached: isReached(address, desired.config) };
    });
}

/**
 * True if a peer answers a packet, or completes a new handshake, which needs packets in both
 * directions. Received bytes are no proof: a peer that receives nothing still sends.
 */
export async function isAnyAnswering(
  tools: Pick<Tools, 'host'>,
  state: Joined,
  peers: readonly ConfirmingPeer[],
): Promise<boolean> {
  if (peers.length === 0) return false;
  const answers = await Promise.all(peers.map(({ address }) => tools.host.isTcpReachable(address, answerWithin)));
  if (answers.includes(true)) return true;
  const device = await tools.host.device(state.interface);
  const heard = new Map(device?.peers.map((peer) => [peer.publicKey, peer.latestHandshake]));
  return peers.some(({ publicKey, latestHandshake }) => (heard.get(publicKey) ?? 0) > (latestHandshake ?? 0));
}
