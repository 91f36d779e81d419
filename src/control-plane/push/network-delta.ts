import type { NetworkDelta } from '../../contract/network.ts';
import { listChanges, type Revision } from '../store/changes.ts';
import { readNetwork, type StoredNetwork } from '../store/networks.ts';
import { listPeers, listPeersAmong, listTokenMarks } from '../store/peers/peer-lists.ts';
import { readChangedMapRules, readMapRules } from '../store/rules.ts';
import type { Db } from '../store/tables.ts';
import { readSnapshot } from '../store/transact.ts';
import { toNetworkHead, toPeer } from './to-contract.ts';

export interface NetworkChanges {
  /** Null for the whole network, which lists no removed peers. */
  readonly base: Revision | null;
  readonly at: Revision;
  readonly delta: Changes;
}

type Changes = Omit<NetworkDelta, 'base'>;

/** The changes since a revision; null if not recorded, or if it belongs to another history. */
export async function readDelta(db: Db, id: number, base: Revision): Promise<NetworkChanges | null> {
  return readSnapshot(db, async (snapshot) => {
    const network = await readNetwork(snapshot, id);
    const delta = await compare(snapshot, network, base);
    return delta && { base, at: revisionOf(network), delta };
  });
}

/** The changes since a revision, or the whole network if {@link readDelta} returns null. */
export async function readDeltaOrAll(db: Db, id: number, base: Revision | null): Promise<NetworkChanges> {
  return readSnapshot(db, async (snapshot) => {
    const network = await readNetwork(snapshot, id);
    const at = revisionOf(network);
    const delta = base === null ? null : await compare(snapshot, network, base);
    if (delta) return { base, at, delta };
    const stored = await listPeers(snapshot, id);
    const peers = stored.map((peer) => toPeer(network, peer));
    const head = toNetworkHead(network, await readMapRules(snapshot, id));
    return { base: null, at, delta: { ...head, peers, removed: [] } };
  });
}

/**
 * The peers that changed since `base` and are not in the map of `at`; empty if not recorded. Leaves
 * out peers that changed again after `at`, because the next delta has them.
 */
export async function listRemoved(db: Db, id: number, base: Revision, at: Revision): Promise<number[]> {
  return readSnapshot(db, async (snapshot) => {
    const changes = (await listChanges(snapshot, id, base)) ?? [];
    const changedAgain = new Set(changes.filter(({ revision }) => revision > at.revision).map(({ peer }) => peer));
    const changed = new Set(changes.flatMap(({ peer }) => (peer === null || changedAgain.has(peer) ? [] : peer)));
    if (changed.size === 0) return [];
    const among = changed.size > mostChanged ? undefined : [...changed];
    for (const [peer] of await listTokenMarks(snapshot, id, among)) changed.delete(peer);
    return [...changed].sort((a, b) => a - b);
  });
}

/** Both databases limit the parameters of a query. */
const mostChanged = 10_000;

function revisionOf({ revision, nonce }: StoredNetwork): Revision {
  return { revision, nonce };
}

async function compare(snapshot: Db, network: StoredNetwork, base: Revision): Promise<Changes | null> {
  const changes = await listChanges(snapshot, network.id, base);
  // The effects of a revision without a change record are unknown.
  const recorded = new Set(changes?.map(({ revision }) => revision)).size;
  if (changes === null || recorded !== network.revision - base.revision) return null;
  const changed = new Set(changes.flatMap(({ peer }) => peer ?? []));
  if (changed.size > mostChanged) return null;
  // A change of the network's routes changes the routes that its connectors serve.
  const withOwnRoutes = changes.some(({ peer }) => peer === null);
  const peers = await listPeersAmong(snapshot, network.id, { ids: [...changed], withOwnRoutes });
  for (const peer of peers) changed.delete(peer.id);
  return {
    ...toNetworkHead(network, await readChangedMapRules(snapshot, network.id, base)),
    peers: peers.map((peer) => toPeer(network, peer)),
    removed: [...changed].sort((a, b) => a - b),
  };
}
