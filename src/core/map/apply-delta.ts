import { BlockList } from 'node:net';
import { addressOf, lengthOf } from '../net/cidr.ts';
import type { NetworkMap, Peer, PeerId } from './model.ts';

/** The manipulation (RFC 3229) of a {@link MapDelta}: A-IM in the request, IM in the reply. */
export const deltaManipulation = 'cpn-delta';

/** A network's changes since an earlier revision: all its fields, but only changed peers. */
export interface MapDelta extends Omit<NetworkMap, 'peers'> {
  /** New peers, and peers that replace those with the same id. */
  readonly peers: readonly Peer[];
  readonly removed: readonly PeerId[];
}

/** Peers keep their order, and new peers come last, as the service lists them. */
export function applyDelta(map: NetworkMap, { peers, removed, ...network }: MapDelta): NetworkMap {
  const gone = new Set(removed);
  const changed = new Map(peers.map((peer) => [peer.id, peer]));
  const kept = map.peers.filter(({ id }) => !gone.has(id)).map((peer) => changed.get(peer.id) ?? peer);
  const known = new Set(map.peers.map(({ id }) => id));
  return { ...network, peers: [...kept, ...peers.filter(({ id }) => !known.has(id))] };
}

/** Names the rule that a map breaks, or null. A delta may keep rules that the whole map breaks. */
export function findInvalid({ cidr, peers }: NetworkMap, maxPeers: number): string | null {
  if (peers.length > maxPeers) return `has more than ${maxPeers} peers`;
  const range = new BlockList();
  range.addSubnet(addressOf(cidr), lengthOf(cidr));
  if (!peers.every(({ address }) => range.check(address))) return 'has a peer outside its range';
  const isOnce = (of: (peer: Peer) => string) => new Set(peers.map(of)).size === peers.length;
  if (!isOnce(({ id }) => `${id}`)) return 'has two peers with one id';
  if (!isOnce(({ publicKey }) => publicKey)) return 'has two peers with one public key';
  if (!isOnce(({ address }) => address)) return 'has two peers with one address';
  return null;
}
