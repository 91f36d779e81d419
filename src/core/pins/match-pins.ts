import { type IdentityKey, isProven } from '../crypto/identity.ts';
import type { PublicKey } from '../crypto/keys.ts';
import type { Peer, PeerId } from '../map/model.ts';
import type { PinRule } from '../map/options.ts';
import type { Address } from '../net/cidr.ts';

/**
 * The pin that each received peer is compared with: that of its id; else, of the pins whose peers are not listed, that of its key; else
 * that of its address. An address given back may rightly go to a new peer, which `report` lets pass: only with `strict`, and where the
 * service tells no ids, is an address known by its key alone.
 */
export function matchPins(peers: readonly Peer[], pins: readonly Pin[], rule: PinRule): ReadonlyMap<Peer, Pin> {
  const matched = new Map<Peer, Pin>();
  const left = new Set(pins);
  const match = (name: (known: Pin) => unknown, find: (peer: Peer) => unknown) => {
    const named = new Map<unknown, Pin>();
    for (const pin of left) if (!named.has(name(pin))) named.set(name(pin), pin);
    for (const peer of peers) {
      const pin = matched.has(peer) ? undefined : named.get(find(peer));
      if (pin === undefined || !left.delete(pin)) continue;
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
    (peer) => (rule === 'strict' || goesByKey(peer.id, peer) ? peer.address : null),
  );
  return matched;
}

/**
 * The pin after its peer was received again. The peer's own proof moves it to another key, if it is newer than the last and the key is
 * not another peer's (`isFree`); every other difference is a claim. Returns `pin` itself where nothing is new.
 */
export function resolvePin(pin: Pin, received: Peer, isFree: boolean): Pin {
  const { proof } = received;
  const isNewer = proof !== undefined && proof.serial > pin.serial && pin.identity !== null && isFree;
  const proven = isNewer && pin.identity !== null && isProven(pin.identity, received.publicKey, proof);
  const moved = proven ? { ...pin, publicKey: received.publicKey, serial: proof.serial } : pin;
  // Without an id of its own a peer goes by its key, whichever that is; one that was removed and joined again has another id.
  const isNamed =
    (proven || goesByKey(pin.peer, pin)) && moved.publicKey === received.publicKey && pin.peer !== received.id;
  const named = isNamed ? { ...moved, peer: received.id } : moved;
  const claimed = agrees(named, received) ? null : knownOf(received);
  return isSamePeer(claimed, named.claimed) ? named : { ...named, claimed };
}

/** The pin of a peer that was never seen before: the received values are pinned. */
export function pinOf(peer: Peer): Pin {
  return { ...knownOf(peer), claimed: null };
}

/** True when a peer has the key and the address that it is known by. */
export function matchesPeer({ publicKey, address }: KnownPeer, peer: Peer): boolean {
  return peer.publicKey === publicKey && peer.address === address;
}

/**
 * An identity received later than the key proves nothing, as its sender may have made it: it is neither held against a peer nor
 * believed. A missing identity is no other one.
 */
function agrees(known: KnownPeer, received: Peer): boolean {
  const isOther = known.identity !== null && received.identity !== undefined && received.identity !== known.identity;
  return known.peer === received.id && matchesPeer(known, received) && !isOther;
}

/** The serial is taken as received: a wrong one makes words of the peer itself count for nothing, never those of others for more. */
function knownOf({ id, address, publicKey, identity, proof }: Peer): KnownPeer {
  return { peer: id, address, publicKey, identity: identity ?? null, serial: proof?.serial ?? 0 };
}

function goesByKey(id: Peer['id'], { publicKey }: Pick<Peer, 'publicKey'>): boolean {
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

/** By what a peer is known. */
export interface KnownPeer {
  readonly peer: PeerId;
  readonly address: Address;
  readonly publicKey: PublicKey;
  readonly identity: IdentityKey | null;
  /** The serial of the newest proof seen; 0 before the first. */
  readonly serial: number;
}

/** What a host knows of a peer since it first saw it, and holds against what the service says later. */
export interface Pin extends KnownPeer {
  /** What the service lists now instead, without the peer's own proof, and no operator accepted yet. */
  readonly claimed: KnownPeer | null;
}
