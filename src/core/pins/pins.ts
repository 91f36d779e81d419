import type { PublicKey } from '../crypto/keys.ts';
import { comparePeerIds, type NetworkMap, type Peer, type PeerId } from '../map/model.ts';
import type { PinRule } from '../map/options.ts';
import { matchesPeer, matchPins, type Pin, pinOf, resolvePin } from './match-pins.ts';

/** More than a network may have peers: those that left longest ago are forgotten beyond it. */
const mostPins = 16_384;

/** Whose pins they are: a host does not pin itself. */
export interface PinContext {
  readonly rule: PinRule;
  readonly self: { readonly id: PeerId; readonly keys: readonly PublicKey[] };
}

/** What a host goes by, and what it knows of the peers. */
export interface PinnedMap {
  readonly map: NetworkMap;
  readonly pins: readonly Pin[];
}

/**
 * Applies pins to a map of the service: returns the map to use, the same one unless a peer keeps its pin, and the pins after
 * it, the very ones given where they say nothing new. A new peer is pinned as received; one that differs from its pin
 * without its own proof adds a claim to the pin. With `report` it is used as received; with `strict` with the key and the address
 * that it is known by, and a peer whose key or address belongs to one so held is left out.
 */
export function applyPins(received: NetworkMap, pins: readonly Pin[], { rule, self }: PinContext): PinnedMap {
  const own = findSelf(received, self);
  const others = received.peers.filter((peer) => peer !== own);
  const matched = matchPins(others, pins, rule);
  const settled = settlePins(matched, pins);
  const used =
    rule === 'strict' ? chooseRows(own, others, settled) : new Map(received.peers.map((peer) => [peer, peer]));
  const listed = others
    .flatMap((peer) => settled.get(peer) ?? (used.has(peer) ? pinOf(peer) : []))
    .toSorted((one, other) => comparePeerIds(one.peer, other.peer));
  const isListed = new Set(matched.values());
  // Of a peer that is not listed the service says nothing.
  const gone = pins
    .filter((pin) => !isListed.has(pin))
    .map((pin) => (pin.claimed === null ? pin : { ...pin, claimed: null }));
  return { map: mapOf(received, used), pins: unlessSame(pins, [...listed, ...gone].slice(0, mostPins)) };
}

/**
 * The map to use once the rule or the pins change, until the host receives a map again. Where that is anything new, it is of no
 * revision: a peer that was left out is known to the service alone, so that the next map must be read whole.
 */
export function reapplyPins({ map, pins }: PinnedMap, holder: PinContext, newPins = pins): PinnedMap {
  const held = applyPins(asReceived(map, pins), newPins, holder);
  return { ...held, map: sameRows(held.map, map) ? map : { ...held.map, revision: null } };
}

/** The pins once what is claimed for this one is accepted; later words of the same identity must still be newer than the last. */
export function acceptMismatch(pins: readonly Pin[], accepted: Pin): readonly Pin[] {
  return pins.map((pin) => {
    const { claimed } = pin;
    if (pin !== accepted || claimed === null) return pin;
    const serial = claimed.identity === pin.identity ? Math.max(pin.serial, claimed.serial) : claimed.serial;
    return { ...claimed, serial, claimed: null };
  });
}

/** The pins, with one for each peer that the map in use has and they do not know: a state may be older than its pins. */
export function completePins({ map, pins }: PinnedMap, { self }: PinContext): readonly Pin[] {
  const known = new Set(pins.flatMap((pin) => [pin.peer, pin.claimed?.peer ?? pin.peer]));
  const own = findSelf(map, self);
  const missing = map.peers.filter((peer) => peer !== own && !known.has(peer.id));
  return missing.length === 0 ? pins : [...missing.map(pinOf), ...pins];
}

/** True where the map in use may differ from the one received: then it is no base for changes. */
export function isMapAltered(pins: readonly Pin[], rule: PinRule): boolean {
  return rule === 'strict' && pins.some(({ claimed }) => claimed !== null);
}

/** This host, be it by a key of its own or, where the service lists another key for it, by its id. */
function findSelf({ peers }: NetworkMap, { id, keys }: PinContext['self']): Peer | undefined {
  const candidates = peers.filter((peer) => keys.includes(peer.publicKey));
  // Any peer can list a key that is not its own.
  return candidates.find((peer) => peer.id === id) ?? candidates[0] ?? peers.find((peer) => peer.id === id);
}

function settlePins(matched: ReadonlyMap<Peer, Pin>, pins: readonly Pin[]): ReadonlyMap<Peer, Pin> {
  const owners = new Map(pins.map((pin) => [pin.publicKey, pin]));
  return new Map(
    [...matched].map(([peer, pin]) => {
      const isFree = (owners.get(peer.publicKey) ?? pin) === pin;
      return [peer, resolvePin(pin, peer, isFree)];
    }),
  );
}

/** Each received peer as it is used: first this host, then those that are held, then those known, then new ones. */
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
    const pin = settled.get(peer);
    const isPinned = pin !== undefined && !matchesPeer(pin, peer);
    const row = isPinned ? { ...peer, publicKey: pin.publicKey, address: pin.address } : peer;
    if (taken.has(row.publicKey) || taken.has(row.address)) continue;
    taken.add(row.publicKey).add(row.address);
    used.set(peer, row);
  }
  return used;
}

/** The map as the service sent it, but for peers that were left out. */
function asReceived(map: NetworkMap, pins: readonly Pin[]): NetworkMap {
  const received = new Map(pins.flatMap(({ claimed }) => (claimed ? [[claimed.peer, claimed]] : [])));
  const used = new Map(
    map.peers.map((peer) => {
      const claimed = received.get(peer.id);
      if (claimed === undefined || matchesPeer(claimed, peer)) return [peer, peer];
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

function unlessSame(before: readonly Pin[], after: readonly Pin[]): readonly Pin[] {
  return before.length === after.length && before.every((pin, at) => pin === after[at]) ? before : after;
}
