import { digestOf } from '../crypto/digest.ts';
import type { PublicKey } from '../crypto/keys.ts';
import { covers, lengthOf } from '../net/cidr.ts';
import { formatEndpoint } from '../net/endpoint.ts';
import type { NetworkMap, PeerId } from './model.ts';

/**
 * True when going by `newer` would take away all that a host reaches: it lists no other peer although there were some, or not
 * the host itself any more, under any of its keys. One such answer may be a slip of the service; a second one is believed.
 *
 * @param self the public keys of this host
 */
export function emptiesTunnel(known: NetworkMap, newer: NetworkMap, self: readonly PublicKey[]): boolean {
  if (lists(known, self) && !lists(newer, self)) return true;
  return countOthers(known, self) > 0 && countOthers(newer, self) === 0;
}

/** The map without the peers that the service states to be gone: that a newer map lacks them is no slip. */
export function withoutRemoved(map: NetworkMap, removed: readonly PeerId[]): NetworkMap {
  if (removed.length === 0) return map;
  const gone = new Set(removed);
  return { ...map, peers: map.peers.filter(({ id }) => !gone.has(id)) };
}

/**
 * True when the network's range would have addresses that it did not have. One such answer is not believed, as a wide range takes away what
 * the host reaches elsewhere. Known as a single address it was not known at all.
 */
export function movesRange(known: NetworkMap, newer: NetworkMap): boolean {
  return lengthOf(known.cidr) < 32 && !covers(known.cidr, newer.cidr);
}

/**
 * The map with this host in it, as it was known, where the service lists it neither now nor did before: such a service tells of the
 * others alone. Any other map as it is.
 */
export function withoutUnlisted(known: NetworkMap, newer: NetworkMap, self: readonly PublicKey[]): NetworkMap {
  const own = known.peers.find((peer) => self.includes(peer.publicKey) && peer.unlisted);
  const isTaken = newer.peers.some(
    ({ publicKey, id, address }) => self.includes(publicKey) || id === own?.id || address === own?.address,
  );
  return own === undefined || isTaken ? newer : { ...newer, peers: [...newer.peers, own] };
}

/** A name for what a map says: its revision, or where the service tells none, a hash of it. */
export function identifyMap({ id, name, cidr, routes, revision, peers, skipped }: NetworkMap): string {
  if (revision !== null) return revision;
  const listed = peers.map((peer) => [
    peer.id,
    peer.name,
    peer.type,
    peer.publicKey,
    peer.address,
    peer.endpoint && formatEndpoint(peer.endpoint),
    peer.routes,
    peer.withdrawn,
    // Where there is none the name of a map is what it was before there could be.
    ...(peer.servingSince === undefined && peer.priority === undefined
      ? []
      : [{ since: peer.servingSince, priority: peer.priority }]),
    ...(peer.via ? [{ via: peer.via.connector }] : []),
    ...(peer.given ? [{ ...peer.given, presharedKey: peer.given.presharedKey?.reveal() ?? null }] : []),
  ]);
  const text = JSON.stringify([id, name, cidr, routes, listed, ...(skipped ? [skipped] : [])]);
  return digestOf(text, 16);
}

function lists(map: NetworkMap, self: readonly PublicKey[]): boolean {
  return map.peers.some((peer) => self.includes(peer.publicKey));
}

function countOthers(map: NetworkMap, self: readonly PublicKey[]): number {
  return map.peers.filter((peer) => !self.includes(peer.publicKey)).length;
}
