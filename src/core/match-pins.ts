import { isProven } from './identity.ts';
import type { Known, Peer, Pin, PinRule } from './model.ts';

/**
 * The pin that each peer told is to be held against: that of its id; else, of the pins whose peers are not told, that of its key; else
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
 * The pin after its peer was told anew. The peer's own word moves it to another key, if it is newer than the last and the key is
 * nobody else's (`isFree`); whatever else is told otherwise is a claim. Returns `pin` itself where nothing is new.
 */
export function settlePin(pin: Pin, told: Peer, isFree: boolean): Pin {
  const { proof } = told;
  const isNewer = proof !== undefined && proof.serial > pin.serial && pin.identity !== null && isFree;
  const proven = isNewer && pin.identity !== null && isProven(pin.identity, told.publicKey, proof);
  const moved = proven ? { ...pin, publicKey: told.publicKey, serial: proof.serial } : pin;
  // Without an id of its own a peer goes by its key, whichever that is.
  const isNamed = goesByKey(pin.peer, pin) && moved.publicKey === told.publicKey && pin.peer !== told.id;
  const named = isNamed ? { ...moved, peer: told.id } : moved;
  const claimed = agrees(named, told) ? null : knownOf(told);
  return sameClaim(claimed, named.claimed) ? named : { ...named, claimed };
}

/** The pin of a peer that was never seen before: what is told is what it will be known by. */
export function pinOf(peer: Peer): Pin {
  return { ...knownOf(peer), claimed: null };
}

/** True when a peer has the key and the address that it is known by. */
export function holds({ publicKey, address }: Known, peer: Peer): boolean {
  return peer.publicKey === publicKey && peer.address === address;
}

/**
 * An identity told later than the key proves nothing, as whoever told it may have made it: it is neither held against a peer nor
 * believed. One that is told no more is no other one.
 */
function agrees(known: Known, told: Peer): boolean {
  const isOther = known.identity !== null && told.identity !== undefined && told.identity !== known.identity;
  return known.peer === told.id && holds(known, told) && !isOther;
}

/** The serial is taken as told: a wrong one makes words of the peer itself count for nothing, never those of others for more. */
function knownOf({ id, address, publicKey, identity, proof }: Peer): Known {
  return { peer: id, address, publicKey, identity: identity ?? null, serial: proof?.serial ?? 0 };
}

function goesByKey(id: Peer['id'], { publicKey }: Pick<Peer, 'publicKey'>): boolean {
  return id === publicKey;
}

function sameClaim(one: Known | null, other: Known | null): boolean {
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
