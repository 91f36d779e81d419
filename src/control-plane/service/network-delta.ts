import type { NetworkDelta } from '../../contract/network.ts';
import { listChanges } from '../store/changes.ts';
import { readNetwork, type StoredNetwork } from '../store/networks.ts';
import { listPeers, listPeersAmong } from '../store/peers.ts';
import type { Db } from '../store/tables.ts';
import { readSnapshot } from '../store/transact.ts';
import type { Context } from './context.ts';
import { presentPeer, presentSummary } from './present.ts';

/** What is different in a network since the revision `base`; where that is null, all of it, and nothing is removed. */
export interface Since extends NetworkDelta {
  readonly base: number | null;
}

/** What is different in a network since a revision; null when that is longer ago than is remembered, or never was. */
export async function readDelta({ db }: Context, id: number, base: number): Promise<NetworkDelta | null> {
  return readSnapshot(db, async (snapshot) => compare(snapshot, await readNetwork(snapshot, id), base));
}

/** What is different in a network since a revision, or all of it where that cannot be told. */
export async function readSince({ db }: Context, id: number, base: number | null): Promise<Since> {
  return readSnapshot(db, async (snapshot) => {
    const network = await readNetwork(snapshot, id);
    const delta = base === null ? null : await compare(snapshot, network, base);
    if (delta) return { ...delta, base };
    const peers = await listPeers(snapshot, id);
    const shown = peers.map((peer) => presentPeer(network, peer));
    return { ...presentSummary(network), peers: shown, removed: [], base: null };
  });
}

async function compare(snapshot: Db, network: StoredNetwork, base: number): Promise<NetworkDelta | null> {
  const changes = await listChanges(snapshot, network.id, base);
  // A revision of which nothing is remembered may be about anything.
  const remembered = new Set(changes.map(({ revision }) => revision)).size;
  if (base > network.revision || remembered !== network.revision - base) return null;
  const changed = new Set(changes.flatMap(({ peer }) => peer ?? []));
  // How a peer with routes of its own is shown depends on those that the network has.
  const withOwnRoutes = changes.some(({ peer }) => peer === null);
  const peers = await listPeersAmong(snapshot, network.id, { ids: [...changed], withOwnRoutes });
  for (const peer of peers) changed.delete(peer.id);
  return {
    ...presentSummary(network),
    peers: peers.map((peer) => presentPeer(network, peer)),
    removed: [...changed].sort((a, b) => a - b),
  };
}
