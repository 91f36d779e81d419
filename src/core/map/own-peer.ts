import { fingerprintOf } from '../crypto/fingerprint.ts';
import type { IdentityKey, KeyProof } from '../crypto/identity.ts';
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

/** The keys under which a network may list this host: either of them during a rotation. */
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
 * Finds this host in a map. Any peer can list a foreign key, so only the peer with this host's id
 * and address can be this host. Without such a peer, as with changing ids, the keys decide.
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
 * Finds this host in a map that is older than its key: a peer with its id and address, without a
 * proof as new as its key's. A copy of this host with a changed key has a newer proof.
 */
export function findFormerSelf(map: NetworkMap, self: OwnHost & { readonly keySerial: number }): Peer | undefined {
  if (findOwnPeer(map, self) !== undefined) return undefined;
  const { id, address } = self.membership?.peer ?? {};
  const listed = map.peers.find((peer) => peer.id === id && peer.address === address);
  return listed !== undefined && (listed.proof?.serial ?? 0) < self.keySerial ? listed : undefined;
}

/** True if a map lists this host by another key, as after a restore or on a copy of it. */
export function hasOtherKey(map: NetworkMap, { membership }: { readonly membership: { readonly peer: ListedPeer } }) {
  const { id, address } = membership.peer;
  return map.peers.some((peer) => peer.id === id && peer.address === address);
}

type ListedPeer = Pick<Peer, 'id' | 'address'>;

/** Lists this host under one of its keys, with its proof, until the next request to the service. */
export function listOwnPeer(map: NetworkMap, own: OwnHost, publicKey: PublicKey, proof: KeyProof | null): NetworkMap {
  const self = findOwnPeer(map, own);
  if (self === undefined || self.publicKey === publicKey) return map;
  const { proof: _, ...rest } = self;
  const listed: Peer = { ...rest, publicKey, ...(proof && { proof }) };
  // No service has this map. Otherwise, a service restored to the revision before the new key would
  // reply that nothing changed.
  return { ...map, revision: null, peers: map.peers.map((peer) => (peer === self ? listed : peer)) };
}

/** A host's wait for the approval of an administrator, who compares the fingerprint. */
export interface Waiting {
  /** ISO 8601. */
  readonly since: string;
  /** Of the identity key, or of the WireGuard key if the service has no identity of this host. */
  readonly fingerprint: string;
}

type WaitingHost = OwnHost & {
  readonly identity: { readonly key: IdentityKey } | null;
  readonly membership: NonNullable<OwnHost['membership']> & { readonly map: NetworkMap };
};

/** Null for a host that does not wait. Takes the key from the host itself, not from the service. */
export function findWaiting(host: WaitingHost): Waiting | null {
  const self = findOwnPeer(host.membership.map, host);
  if (self?.awaitingApproval === undefined) return null;
  const key = self.identity === undefined || host.identity === null ? host.keyPair.publicKey : host.identity.key;
  return { since: new Date(self.awaitingApproval).toISOString(), fingerprint: fingerprintOf(key) };
}
