import type { NetworkDelta } from '../../contract/network.ts';
import { listChanges } from '../store/changes.ts';
import { readNetwork, type StoredNetwork } from '../store/networks.ts';
import { listPeers, listPeersAmong } from '../store/peers.ts';
import type { Revision } from '../store/revision.ts';
import type { Db } from '../store/tables.ts';
import { readSnapshot } from '../store/transact.ts';
import type { Context } from './context.ts';
import { presentPeer, presentSummary } from './present.ts';

/** What is different in a network since the revision `base`; where that is null, all of it, and nothing is removed. */
export interface Since {
  readonly base: Revision | null;
  /** What the network is at. */
  readonly at: Revision;
  readonly delta: NetworkDelta;
}

/** What is different in a network since a revision; null when that is longer ago than is remembered, or never was. */
export async function readDelta({ db }: Context, id: number, base: Revision): Promise<Since | null> {
  return readSnapshot(db, async (snapshot) => {
    const network = await readNetwork(snapshot, id);
    const delta = await compare(snapshot, network, base);
    return delta && { base, at: revisionOf(network), delta };
  });
}

/** What is different in a network since a revision, or all of it where that cannot be told. */
export async function readSince({ db }: Context, id: number, base: Revision | null): Promise<Since> {
  return readSnapshot(db, async (snapshot) => {
    const network = await readNetwork(snapshot, id);
    const at = revisionOf(network);
    const delta = base === null ? null : await compare(snapshot, network, base);
    if (delta) return { base, at, delta };
    const peers = await listPeers(snapshot, id);
    const shown = peers.map((peer) => presentPeer(network, peer));
    return { base: null, at, delta: { ...presentSummary(network), peers: shown, removed: [] } };
  });
}

function revisionOf({ revision, nonce }: StoredNetwork): Revision {
  return { revision, nonce };
}

async function compare(snapshot: Db, network: StoredNetwork, base: Revision): Promise<NetworkDelta | null> {
  const changes = await listChanges(snapshot, network.id, base);
  // A revision of which nothing is remembered may be about anything.
  const remembered = new Set(changes?.map(({ revision }) => revision)).size;
  if (changes === null || remembered !== network.revision - base.revision) return null;
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
