import { guessSizes } from '../../../core/health/path-mtu.ts';
import { isFresh } from '../../../core/health/peer-health.ts';
import type { ActualPeer } from '../../../core/host-state/actual.ts';
import type { Peer, PeerId } from '../../../core/map/model.ts';
import { isForProbes } from '../../../core/paths/probe-address.ts';
import type { Evaluation } from '../../reconcile/evaluate-network.ts';
import { measurePath } from '../../reconcile/measure-path.ts';
import type { Tools } from '../../tools.ts';

const mostPeers = 8;

/** A peer with a session. */
export interface MeasuredPeer {
  readonly peer: Peer;
  readonly observed: ActualPeer;
}

/**
 * Returns the peers with a session, but for those under trial: their packets go through the relay.
 * The peer that limits the MTU comes first, then connectors,
 * then the others by traffic.
 */
export function findCandidates({ state, desired, actual }: Evaluation, now: number): readonly MeasuredPeer[] {
  const carries = ({ allowedIps }: ActualPeer) => allowedIps.length === 0 || !allowedIps.every(isForProbes);
  const fresh = (actual.device?.peers ?? []).filter((each) => isFresh(each.latestHandshake, now) && carries(each));
  const keys = new Set(fresh.map(({ publicKey }) => publicKey));
  const listed = state.membership.map.peers.filter(({ publicKey }) => keys.has(publicKey));
  const peers = new Map(listed.map((peer) => [peer.publicKey, peer]));
  const rank = ({ peer }: MeasuredPeer) => (peer.id === desired.pathMtu?.peer ? 2 : peer.type === 'connector' ? 1 : 0);
  const traffic = ({ observed }: MeasuredPeer) => observed.rxBytes + observed.txBytes;
  return fresh
    .flatMap((observed) => {
      const peer = peers.get(observed.publicKey);
      return peer === undefined ? [] : [{ peer, observed }];
    })
    .toSorted((one, other) => rank(other) - rank(one) || traffic(other) - traffic(one))
    .slice(0, mostPeers);
}

/** Measures the peers' path MTU with echoes; null for no answer. @throws CpnError if they fail */
export async function measurePaths(
  tools: Pick<Tools, 'host'>,
  { state, desired, actual }: Evaluation,
  due: readonly MeasuredPeer[],
  signal: AbortSignal,
): Promise<ReadonlyMap<PeerId, number | null>> {
  const { fittedMtu: full, pathMtu } = desired;
  // The pass may have lowered the MTU since the observation.
  const isNarrow = Math.min(actual.link?.mtu ?? full, desired.config.mtu) < full;
  const addresses = due.map(({ peer }) => peer.address);
  const restore = isNarrow ? await tools.host.raiseProbeMtu?.(state.interface, addresses, full) : null;
  try {
    const measured = due.map(async ({ peer }): Promise<[PeerId, number | null]> => {
      return [peer.id, await measurePath(tools.host, peer.address, full, guessSizes(pathMtu), { signal })];
    });
    return new Map(await Promise.all(measured));
  } finally {
    await restore?.();
  }
}
