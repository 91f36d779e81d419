import type { KeyProof } from '../crypto/identity.ts';
import type { KeyPair, PublicKey } from '../crypto/keys.ts';
import type { NetworkMap, Peer } from './model.ts';

/** The keys of a host: the pair in use and, during a rotation, the other pair. */
export interface OwnKeys {
  readonly keyPair: KeyPair;
  readonly rotation: { readonly keyPair: KeyPair } | null;
}

/** A host from its own view: its keys and, once it has joined, the result of its enrolment. */
export interface OwnHost extends OwnKeys {
  readonly membership: { readonly peer: Pick<Peer, 'id' | 'address'> } | null;
}

/**
 * The public keys under which a network may list this host. During a rotation, a map may have
 * either.
 */
export function ownKeys({ keyPair, rotation }: OwnKeys): readonly PublicKey[] {
  return rotation === null ? [keyPair.publicKey] : [keyPair.publicKey, rotation.keyPair.publicKey];
}

/** The entry of a host in a network, under one of its keys. */
export type ListedSelf = Pick<Peer, 'publicKey' | 'address'>;

/** Returns the entries that a network may have for this host. */
export function listedAs(
  self: OwnKeys & { readonly membership: { readonly peer: Pick<Peer, 'address'> } },
): ListedSelf[] {
  const { address } = self.membership.peer;
  return ownKeys(self).map((publicKey) => ({ publicKey, address }));
}

/**
 * Finds this host in a map; undefined if the map lists it under none of its keys. Any peer can list
 * a key that is not its own. Therefore, if a peer has the id and the address of this host, only
 * that peer can be this host. Otherwise, as with a service whose ids change, the keys alone decide.
 */
export function findOwnPeer(map: NetworkMap, self: OwnHost): Peer | undefined {
  const own = ownKeys(self);
  const { id, address } = self.membership?.peer ?? {};
  const candidates = map.peers.filter(({ publicKey }) => own.includes(publicKey));
  const known = candidates.find((peer) => peer.id === id);
  if (known) return known;
  return map.peers.some((peer) => peer.id === id && peer.address === address) ? undefined : candidates[0];
}

/**
 * Finds this host in a map that is older than its key: a peer with its id and its address, and
 * without a proof as new as that of its key. A copy of this host that changed its key has a newer
 * proof, and is another host.
 */
export function findFormerSelf(map: NetworkMap, self: OwnHost & { readonly keySerial: number }): Peer | undefined {
  if (findOwnPeer(map, self) !== undefined) return undefined;
  const { id, address } = self.membership?.peer ?? {};
  const listed = map.peers.find((peer) => peer.id === id && peer.address === address);
  return listed !== undefined && (listed.proof?.serial ?? 0) < self.keySerial ? listed : undefined;
}

/**
 * True if a map that lacks this host has another key in its place. The state is then older than the
 * last rotation, as after a restore, or another machine has a copy of it.
 */
export function hasOtherKey(map: NetworkMap, { membership }: { readonly membership: { readonly peer: ListedPeer } }) {
  const { id, address } = membership.peer;
  return map.peers.some((peer) => peer.id === id && peer.address === address);
}

type ListedPeer = Pick<Peer, 'id' | 'address'>;

/**
 * Returns the map with this host under one of its keys, with the proof of the key, until the next
 * request to the service.
 */
export function listOwnPeer(map: NetworkMap, own: OwnHost, publicKey: PublicKey, proof: KeyProof | null): NetworkMap {
  const self = findOwnPeer(map, own);
  if (self === undefined || self.publicKey === publicKey) return map;
  const { proof: _, ...rest } = self;
  const listed: Peer = { ...rest, publicKey, ...(proof && { proof }) };
  // No service has this map. Otherwise, a service restored to the revision before the new key would
  // reply that nothing changed.
  return { ...map, revision: null, peers: map.peers.map((peer) => (peer === self ? listed : peer)) };
}
