import { type IdentityKey, isProven } from '../crypto/identity.ts';
import type { PublicKey } from '../crypto/keys.ts';
import type { Peer, PeerId } from '../map/model.ts';
import type { PinRule } from '../map/options.ts';
import type { Address } from '../net/cidr.ts';

/**
 * The pin with which each received peer is compared: by its id, else by its key among pins whose
 * peers are not listed, else by its address. The address counts only with `strict`, or if the
 * service sends no ids: a released address may go to a new peer, which `report` allows.
 */
export function matchPins(peers: readonly Peer[], pins: readonly Pin[], rule: PinRule): ReadonlyMap<Peer, Pin> {
  const matched = new Map<Peer, Pin>();
  const unmatched = new Set(pins);
  const match = (valueOfPin: (pin: Pin) => unknown, valueOfPeer: (peer: Peer) => unknown) => {
    const pinsByValue = new Map<unknown, Pin>();
    for (const pin of unmatched) if (!pinsByValue.has(valueOfPin(pin))) pinsByValue.set(valueOfPin(pin), pin);
    for (const peer of peers) {
      const pin = matched.has(peer) ? undefined : pinsByValue.get(valueOfPeer(peer));
      if (pin === undefined || !unmatched.delete(pin)) continue;
      matched.set(peer, pin);
    }
  };
  match(
    (pin) => pin.peer,
    (peer) => peer.id,
  );
  match(
    (pin) => pin.publicKey,
    (peer) => peer.publicKey,
  );
  match(
    (pin) => pin.address,
    (peer) => (rule === 'strict' || isIdentifiedByKey(peer.id, peer) ? peer.address : null),
  );
  return matched;
}

/**
 * The pin after its peer was received again. The peer's own proof moves the pin to another key. The
 * proof must be newer than the last, and the key must belong to no other peer (`isFree`). Every
 * other difference becomes a mismatch. Returns `pin` itself if nothing changed.
 */
export function resolvePin(pin: Pin, received: Peer, isFree: boolean): Pin {
  const { proof } = received;
  const isNewer = proof !== undefined && proof.serial > pin.serial && pin.identity !== null && isFree;
  const proven = isNewer && pin.identity !== null && isProven(pin.identity, received.publicKey, proof);
  const moved = proven ? { ...pin, publicKey: received.publicKey, serial: proof.serial } : pin;
  // A peer without an id is identified by its key. A peer that was removed and joined again has
  // another id.
  const isNamed =
    (proven || isIdentifiedByKey(pin.peer, pin)) && moved.publicKey === received.publicKey && pin.peer !== received.id;
  const named = isNamed ? { ...moved, peer: received.id } : moved;
  const claimed = agrees(named, received) ? null : knownOf(received);
  return isSamePeer(claimed, named.claimed) ? named : { ...named, claimed };
}

/** Pins the received values of a new peer. */
export function pinOf(peer: Peer): Pin {
  return { ...knownOf(peer), claimed: null };
}

/** True if a peer has the pinned key and address. */
export function matchesPeer({ publicKey, address }: KnownPeer, peer: Peer): boolean {
  return peer.publicKey === publicKey && peer.address === address;
}

/**
 * An identity that was received after the key proves nothing, because the sender may have created
 * it. It causes no mismatch and is not trusted. A missing identity is no difference.
 */
function agrees(known: KnownPeer, received: Peer): boolean {
  const isOther = known.identity !== null && received.identity !== undefined && received.identity !== known.identity;
  return known.peer === received.id && matchesPeer(known, received) && !isOther;
}

/** Trusts the serial: a wrong one only invalidates the peer's own proofs, and helps no one else. */
function knownOf({ id, address, publicKey, identity, proof }: Peer): KnownPeer {
  return { peer: id, address, publicKey, identity: identity ?? null, serial: proof?.serial ?? 0 };
}

function isIdentifiedByKey(id: Peer['id'], { publicKey }: Pick<Peer, 'publicKey'>): boolean {
  return id === publicKey;
}

function isSamePeer(one: KnownPeer | null, other: KnownPeer | null): boolean {
  if (one === null || other === null) return one === other;
  const { peer, address, publicKey, identity, serial } = other;
  return (
    one.peer === peer &&
    one.address === address &&
    one.publicKey === publicKey &&
    one.identity === identity &&
    one.serial === serial
  );
}

/** The values that identify a peer. */
export interface KnownPeer {
  readonly peer: PeerId;
  readonly address: Address;
  readonly publicKey: PublicKey;
  readonly identity: IdentityKey | null;
  /** The serial of the newest received proof. 0 before the first. */
  readonly serial: number;
}

/** The values of a peer at the first contact, with which later data of the service is compared. */
export interface Pin extends KnownPeer {
  /** The service's current values, without the peer's proof, and not accepted by an operator. */
  readonly claimed: KnownPeer | null;
}
