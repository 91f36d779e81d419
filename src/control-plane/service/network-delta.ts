import type { NetworkDelta } from '../../contract/network.ts';
import type { Caller } from '../caller.ts';
import { listChanges } from '../store/changes.ts';
import { listPeersAmong } from '../store/peers.ts';
import { readSnapshot } from '../store/transact.ts';
import type { Context } from './context.ts';
import { requireNetwork } from './networks.ts';
import { presentPeer, presentSummary } from './present.ts';

/** What is different in a network since a revision; null when that is longer ago than is remembered, or never was. */
export async function readDelta(
  { db }: Context,
  caller: Caller,
  id: number,
  base: number,
): Promise<NetworkDelta | null> {
  return readSnapshot(db, async (snapshot) => {
    const network = await requireNetwork(snapshot, caller, id);
    const changes = await listChanges(snapshot, id, base);
    // A revision of which nothing is remembered may be about anything.
    const remembered = new Set(changes.map(({ revision }) => revision)).size;
    if (base > network.revision || remembered !== network.revision - base) return null;
    const changed = new Set(changes.flatMap(({ peer }) => peer ?? []));
    // How a peer with routes of its own is shown depends on those that the network has.
    const withOwnRoutes = changes.some(({ peer }) => peer === null);
    const peers = await listPeersAmong(snapshot, id, { ids: [...changed], withOwnRoutes });
    for (const peer of peers) changed.delete(peer.id);
    return {
      ...presentSummary(network),
      peers: peers.map((peer) => presentPeer(network, peer)),
      removed: [...changed].sort((a, b) => a - b),
    };
  });
}
