import type { Network, NetworkDelta } from '../../contract/network.ts';

/** A network after the changes that a 226 brings. */
export function applyDelta(before: Network, { removed, peers: changed, ...summary }: NetworkDelta): Network {
  const gone = new Set(removed);
  const byId = new Map(before.peers.map((peer) => [peer.id, peer]));
  for (const peer of changed) byId.set(peer.id, peer);
  const peers = [...byId.values()].filter(({ id }) => !gone.has(id)).sort((a, b) => a.id - b.id);
  return { ...summary, peers };
}
