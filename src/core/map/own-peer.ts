import type { KeyProof } from '../crypto/identity.ts';
import type { KeyPair, PublicKey } from '../crypto/keys.ts';
import type { NetworkMap, Peer } from './model.ts';

/** The keys of a host: the pair in use and, while that is being changed, the other one. */
export interface OwnKeys {
  readonly keyPair: KeyPair;
  readonly rotation: { readonly keyPair: KeyPair } | null;
}

/** A host as it knows itself: its keys and, once it has joined, what its enrolment gave it. */
export interface OwnHost extends OwnKeys {
  readonly membership: { readonly peer: Pick<Peer, 'id' | 'address'> } | null;
}

/** The public keys under which a network may list this host: while its keys change, a map may have either. */
export function ownKeys({ keyPair, rotation }: OwnKeys): readonly PublicKey[] {
  return rotation === null ? [keyPair.publicKey] : [keyPair.publicKey, rotation.keyPair.publicKey];
}

/** What a network lists of a host under one of its keys. */
export type ListedSelf = Pick<Peer, 'publicKey' | 'address'>;

/** What a network may list of this host. */
export function listedAs(
  self: OwnKeys & { readonly membership: { readonly peer: Pick<Peer, 'address'> } },
): ListedSelf[] {
  const { address } = self.membership.peer;
  return ownKeys(self).map((publicKey) => ({ publicKey, address }));
}

/**
 * This host as a map has it; undefined where the map lists it under none of its keys. Any peer can list a key that is not its own, so
 * the peer with the id and the address of this host is this host or none is. Only where there is no such peer, as of a service whose
 * ids change, do the keys alone tell.
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
 * This host in a map that is older than its key: a peer with its id and its address, and without a proof as new as that of its key. A
 * copy of this host that changed its key has a newer proof, and is another host.
 */
export function findFormerSelf(map: NetworkMap, self: OwnHost & { readonly keySerial: number }): Peer | undefined {
  if (findOwnPeer(map, self) !== undefined) return undefined;
  const { id, address } = self.membership?.peer ?? {};
  const listed = map.peers.find((peer) => peer.id === id && peer.address === address);
  return listed !== undefined && (listed.proof?.serial ?? 0) < self.keySerial ? listed : undefined;
}

/**
 * How a map lacks this host, and what to do. Another key in the place of this host's means that the state is older than the last change
 * of keys, as after a restore, or that another machine has a copy of it.
 */
export function describeUnlisted(
  map: NetworkMap,
  { membership }: { readonly membership: { readonly peer: Pick<Peer, 'id' | 'address'> } },
): { readonly found: string; readonly remedy: string } {
  const { id, address } = membership.peer;
  if (!map.peers.some((peer) => peer.id === id && peer.address === address)) {
    return { found: `no longer lists this host (peer ${id})`, remedy: '"cpn join" with a new key joins again' };
  }
  return {
    found: `lists another key for this host (peer ${id}): this state is older than the last change of keys, or a copy`,
    remedy: 'restore the newer state file, or take the peer over with "cpn join" and a new enrolment key',
  };
}

/** The map with this host under one of its keys, and the proof of that, until the service is asked again. */
export function listOwnPeer(map: NetworkMap, own: OwnHost, publicKey: PublicKey, proof: KeyProof | null): NetworkMap {
  const self = findOwnPeer(map, own);
  if (self === undefined || self.publicKey === publicKey) return map;
  const { proof: _, ...rest } = self;
  const listed: Peer = { ...rest, publicKey, ...(proof && { proof }) };
  // No service has this map. One that was restored to the revision before the new key would else answer that nothing changed.
  return { ...map, revision: null, peers: map.peers.map((peer) => (peer === self ? listed : peer)) };
}
