import type { KeyProof } from './identity.ts';
import type { KeyPair, PublicKey } from './keys.ts';
import type { NetworkMap, Peer } from './model.ts';

/** The keys of a host: the pair in use and, while that is being changed, the other one. */
export interface OwnKeys {
  readonly keyPair: KeyPair;
  readonly rotation: { readonly keyPair: KeyPair } | null;
}

/** The public keys under which a network may list this host: while its keys change, a map may have either. */
export function ownKeys({ keyPair, rotation }: OwnKeys): readonly PublicKey[] {
  return rotation === null ? [keyPair.publicKey] : [keyPair.publicKey, rotation.keyPair.publicKey];
}

/** This host as a map has it; undefined where the map lists it under none of its keys. */
export function findOwnPeer(map: NetworkMap, keys: OwnKeys): Peer | undefined {
  const own = ownKeys(keys);
  return map.peers.find(({ publicKey }) => own.includes(publicKey));
}

/** The map with this host under one of its keys, and the proof of that, until the service is asked again. */
export function listOwnPeer(map: NetworkMap, keys: OwnKeys, publicKey: PublicKey, proof: KeyProof | null): NetworkMap {
  const self = findOwnPeer(map, keys);
  if (self === undefined || self.publicKey === publicKey) return map;
  const { proof: _, ...rest } = self;
  const listed: Peer = { ...rest, publicKey, ...(proof && { proof }) };
  return { ...map, peers: map.peers.map((peer) => (peer === self ? listed : peer)) };
}
