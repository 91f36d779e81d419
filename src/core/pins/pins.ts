import type { PublicKey } from '../crypto/keys.ts';
import { comparePeerIds, type NetworkMap, type Peer, type PeerId } from '../map/model.ts';
import type { PinRule } from '../map/options.ts';
import { matchesPeer, matchPins, type Pin, pinOf, resolvePin } from './match-pins.ts';

/** Exceeds any network. Beyond it, the pins of peers that left longest ago are dropped. */
const mostPins = 16_384;

/** The rule, and this host, which has no pin of its own. */
export interface PinContext {
  readonly rule: PinRule;
  readonly self: { readonly id: PeerId; readonly keys: readonly PublicKey[] };
}

/** The map in use, and the pins of its peers. */
export interface PinnedMap {
  readonly map: NetworkMap;
  readonly pins: readonly Pin[];
}

/**
 * Applies pins to a map of the service. Returns the map to use and the pins, both unchanged if
 * nothing differs. A new peer is pinned as received. A peer that differs from its pin without its
 * own proof adds a mismatch to the pin. With `report`, the received values are used. With `strict`,
 * the pinned key and address are used, and other peers with that key or address are left out.
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
  // The service no longer lists the peer, so its mismatch is dropped.
  const gone = pins
    .filter((pin) => !isListed.has(pin))
    .map((pin) => (pin.claimed === null ? pin : { ...pin, claimed: null }));
  return { map: mapOf(received, used), pins: unlessSame(pins, [...listed, ...gone].slice(0, mostPins)) };
}

/**
 * The map to use after the rule or the pins changed, until the next map. If it changed, its
 * revision is null, so that the next map is read as a whole: only the service has omitted peers.
 */
export function reapplyPins({ map, pins }: PinnedMap, holder: PinContext, newPins = pins): PinnedMap {
  const held = applyPins(asReceived(map, pins), newPins, holder);
  return { ...held, map: sameRows(held.map, map) ? map : { ...held.map, revision: null } };
}

/** Accepts a pin's mismatch. Later proofs of the identity must still be newer than the last. */
export function acceptMismatch(pins: readonly Pin[], accepted: Pin): readonly Pin[] {
  return pins.map((pin) => {
    const { claimed } = pin;
    if (pin !== accepted || claimed === null) return pin;
    const serial = claimed.identity === pin.identity ? Math.max(pin.serial, claimed.serial) : claimed.serial;
    return { ...claimed, serial, claimed: null };
  });
}

/** Adds a pin for each peer of the map that has none, as in a state from before pins existed. */
export function completePins({ map, pins }: PinnedMap, { self }: PinContext): readonly Pin[] {
  const known = new Set(pins.flatMap((pin) => [pin.peer, pin.claimed?.peer ?? pin.peer]));
  const own = findSelf(map, self);
  const missing = map.peers.filter((peer) => peer !== own && !known.has(peer.id));
  return missing.length === 0 ? pins : [...missing.map(pinOf), ...pins];
}

/** True if the map in use may differ from the received one. Then it is no base for deltas. */
export function isMapAltered(pins: readonly Pin[], rule: PinRule): boolean {
  return rule === 'strict' && pins.some(({ claimed }) => claimed !== null);
}

/** Finds this host by its own key. If the service lists another key for it, by its id. */
function findSelf({ peers }: NetworkMap, { id, keys }: PinContext['self']): Peer | undefined {
  const candidates = peers.filter((peer) => keys.includes(peer.publicKey));
  // Any peer can list a foreign key.
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

/** The used row of each peer. This host takes precedence, then mismatched, pinned and new peers. */
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

/** Restores the map as the service sent it, except for peers that were left out. */
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
