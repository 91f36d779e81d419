import type { PublicKey } from './keys.ts';
import { holds, matchPins, pinOf, settlePin } from './match-pins.ts';
import { comparePeerIds, type NetworkMap, type Peer, type PeerId, type Pin, type PinRule } from './model.ts';

/** More than a network may have peers: those that left longest ago are forgotten beyond it. */
const mostPins = 16_384;

/** Whose pins they are: a host does not pin itself. */
export interface Holder {
  readonly rule: PinRule;
  readonly self: { readonly id: PeerId; readonly keys: readonly PublicKey[] };
}

/** What a host goes by, and what it knows of the peers. */
export interface Held {
  readonly map: NetworkMap;
  readonly pins: readonly Pin[];
}

/**
 * What becomes of a map that the service told: the map to go by, which is the very one told unless a peer is held, and the pins after
 * it, the very ones given where they say nothing new. A peer never seen is pinned as told; one that is told otherwise than its pin
 * says, without its own word for it, gets its pin a claim. With `report` it is used as told; with `strict` with the key and the address
 * that it is known by, and a peer whose key or address belongs to one so held is left out.
 */
export function holdPins(told: NetworkMap, pins: readonly Pin[], { rule, self }: Holder): Held {
  const own = findSelf(told, self);
  const others = told.peers.filter((peer) => peer !== own);
  const matched = matchPins(others, pins, rule);
  const settled = settlePins(matched, pins);
  const used = rule === 'strict' ? chooseRows(own, others, settled) : new Map(told.peers.map((peer) => [peer, peer]));
  const listed = others
    .flatMap((peer) => settled.get(peer) ?? (used.has(peer) ? pinOf(peer) : []))
    .toSorted((one, other) => comparePeerIds(one.peer, other.peer));
  const isListed = new Set(matched.values());
  const gone = pins.filter((pin) => !isListed.has(pin)).map(dropClaim);
  return { map: mapOf(told, used), pins: unlessSame(pins, [...listed, ...gone].slice(0, mostPins)) };
}

/**
 * What a host goes by once the rule or the pins are others, until it is told a map again. Where that is anything new, it is of no
 * revision: a peer that was left out is known to the service alone, so that the next map must be read whole.
 */
export function recastPins({ map, pins }: Held, holder: Holder, newPins = pins): Held {
  const held = holdPins(asTold(map, pins), newPins, holder);
  return { ...held, map: sameRows(held.map, map) ? map : { ...held.map, revision: null } };
}

/** The pins once what is claimed for this one is accepted; later words of the same identity must still be newer than the last. */
export function acceptClaim(pins: readonly Pin[], accepted: Pin): readonly Pin[] {
  return pins.map((pin) => {
    const { claimed } = pin;
    if (pin !== accepted || claimed === null) return pin;
    const serial = claimed.identity === pin.identity ? Math.max(pin.serial, claimed.serial) : claimed.serial;
    return { ...claimed, serial, claimed: null };
  });
}

/** The pins, with one for each peer that the map in use has and they do not know: a state may be older than its pins. */
export function completePins({ map, pins }: Held, { self }: Holder): readonly Pin[] {
  const known = new Set(pins.flatMap((pin) => [pin.peer, pin.claimed?.peer ?? pin.peer]));
  const own = findSelf(map, self);
  const missing = map.peers.filter((peer) => peer !== own && !known.has(peer.id));
  return missing.length === 0 ? pins : [...missing.map(pinOf), ...pins];
}

/** True where the map in use may differ from the one told: then it is no base for changes. */
export function isHolding(pins: readonly Pin[], rule: PinRule): boolean {
  return rule === 'strict' && pins.some(({ claimed }) => claimed !== null);
}

/** This host, be it by a key of its own or, where another key is told for it, by its id. */
function findSelf({ peers }: NetworkMap, { id, keys }: Holder['self']): Peer | undefined {
  const candidates = peers.filter((peer) => keys.includes(peer.publicKey));
  // Any peer can list a key that is not its own.
  return candidates.find((peer) => peer.id === id) ?? candidates[0] ?? peers.find((peer) => peer.id === id);
}

function settlePins(matched: ReadonlyMap<Peer, Pin>, pins: readonly Pin[]): ReadonlyMap<Peer, Pin> {
  const owners = new Map(pins.map((pin) => [pin.publicKey, pin]));
  return new Map(
    [...matched].map(([peer, pin]) => {
      const isFree = (owners.get(peer.publicKey) ?? pin) === pin;
      return [peer, settlePin(pin, peer, isFree)];
    }),
  );
}

/** Each peer told as it is to be used: first this host, then those that are held, then those known, then new ones. */
function chooseRows(
  own: Peer | undefined,
  others: readonly Peer[],
  settled: ReadonlyMap<Peer, Pin>,
): ReadonlyMap<Peer, Peer> {
  const rank = (peer: Peer) => {
    const pin = settled.get(peer);
    return pin === undefined ? 2 : pin.claimed === null ? 1 : 0;
  };
  const taken = new Set<string>();
  const used = new Map<Peer, Peer>();
  for (const peer of [...(own ? [own] : []), ...others.toSorted((one, other) => rank(one) - rank(other))]) {
    const row = inUse(peer, settled.get(peer));
    if (taken.has(row.publicKey) || taken.has(row.address)) continue;
    taken.add(row.publicKey).add(row.address);
    used.set(peer, row);
  }
  return used;
}

function inUse(peer: Peer, pin: Pin | undefined): Peer {
  return pin === undefined || holds(pin, peer) ? peer : { ...peer, publicKey: pin.publicKey, address: pin.address };
}

/** The map as the service told it, but for peers that were left out. */
function asTold(map: NetworkMap, pins: readonly Pin[]): NetworkMap {
  const claims = new Map(pins.flatMap(({ claimed }) => (claimed ? [[claimed.peer, claimed]] : [])));
  const used = new Map(
    map.peers.map((peer) => {
      const claimed = claims.get(peer.id);
      if (claimed === undefined || holds(claimed, peer)) return [peer, peer];
      return [peer, { ...peer, publicKey: claimed.publicKey, address: claimed.address }];
    }),
  );
  return mapOf(map, used);
}

function mapOf(map: NetworkMap, used: ReadonlyMap<Peer, Peer>): NetworkMap {
  const peers = map.peers.flatMap((peer) => used.get(peer) ?? []);
  return peers.length === map.peers.length && peers.every((peer, at) => peer === map.peers[at])
    ? map
    : { ...map, peers };
}

function sameRows(one: NetworkMap, other: NetworkMap): boolean {
  const rows = ({ peers }: NetworkMap) =>
    JSON.stringify(peers.map(({ id, publicKey, address }) => [id, publicKey, address]));
  return one === other || rows(one) === rows(other);
}

/** Of a peer that is not listed the service says nothing. */
function dropClaim(pin: Pin): Pin {
  return pin.claimed === null ? pin : { ...pin, claimed: null };
}

function unlessSame(before: readonly Pin[], after: readonly Pin[]): readonly Pin[] {
  return before.length === after.length && before.every((pin, at) => pin === after[at]) ? before : after;
}
