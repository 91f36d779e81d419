import { digestOf, type PublicKey } from '../crypto/keys.ts';
import { covers, lengthOf } from '../net/cidr.ts';
import { formatEndpoint } from '../net/endpoint.ts';
import { sameData } from '../util/same-data.ts';
import type { NetworkMap, PeerId } from './model.ts';

/**
 * True if `newer` would remove everything that a host reaches: all other peers, or the host under
 * any of its keys (`self`). One such reply may be an error of the service; a second is accepted.
 */
export function emptiesTunnel(known: NetworkMap, newer: NetworkMap, self: readonly PublicKey[]): boolean {
  if (lists(known, self) && !lists(newer, self)) return true;
  return countOthers(known, self) > 0 && countOthers(newer, self) === 0;
}

/** Removes the peers that the service reports as removed: a newer map rightly lacks them. */
export function withoutRemoved(map: NetworkMap, removed: readonly PeerId[]): NetworkMap {
  if (removed.length === 0) return map;
  const gone = new Set(removed);
  return { ...map, peers: map.peers.filter(({ id }) => !gone.has(id)) };
}

/** Returns a map with the access rules of a newer one, and with its tags of the same peers. */
export function withRulesOf(map: NetworkMap, newer: NetworkMap): NetworkMap {
  if (map.rules === undefined && newer.rules === undefined) return map;
  const newest = new Map(newer.peers.map((peer) => [peer.id, peer]));
  const peers = map.peers.map((peer) => {
    const { tags: _, enforcesRules: __, ...rest } = peer;
    const { tags, enforcesRules } = newest.get(peer.id) ?? peer;
    return { ...rest, ...(tags && { tags }), ...(enforcesRules && { enforcesRules }) };
  });
  const { rules: _, ...rest } = map;
  return { ...rest, ...(newer.rules && { rules: newer.rules }), peers };
}

/** True if a newer map has other access rules, and nothing else has changed. */
export function differsInRulesAlone(known: NetworkMap, newer: NetworkMap): boolean {
  return sameData({ ...withRulesOf(known, newer), revision: newer.revision }, newer);
}

/**
 * True if the range would gain addresses. One such reply is not enough: a wide range takes away
 * what the host reaches elsewhere. A known range of one address counts as unknown.
 */
export function movesRange(known: NetworkMap, newer: NetworkMap): boolean {
  return lengthOf(known.cidr) < 32 && !covers(known.cidr, newer.cidr);
}

/** Adds this host if the service lists it neither now nor before, but only the other peers. */
export function withoutUnlisted(known: NetworkMap, newer: NetworkMap, self: readonly PublicKey[]): NetworkMap {
  const own = known.peers.find((peer) => self.includes(peer.publicKey) && peer.unlisted);
  const isTaken = newer.peers.some(
    ({ publicKey, id, address }) => self.includes(publicKey) || id === own?.id || address === own?.address,
  );
  return own === undefined || isTaken ? newer : { ...newer, peers: [...newer.peers, own] };
}

/** Identifies the content of a map: by its revision, or by a hash if the service sends none. */
export function identifyMap({
  id,
  name,
  cidr,
  routes,
  relay,
  rules,
  spread,
  routeDns,
  revision,
  peers,
  skipped,
}: NetworkMap): string {
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
    // Without these fields, the hash of a map stays the same as before they existed.
    ...(peer.servingSince === undefined && peer.priority === undefined
      ? []
      : [{ since: peer.servingSince, priority: peer.priority }]),
    ...(peer.via ? [{ via: peer.via.connector }] : []),
    ...(peer.followsRelay ? [{ followsRelay: true }] : []),
    ...(peer.masquerades ? [{ masquerades: true }] : []),
    ...(peer.tags ? [{ tags: peer.tags }] : []),
    ...(peer.enforcesRules ? [{ enforcesRules: true }] : []),
    ...(peer.given ? [{ ...peer.given, presharedKey: peer.given.presharedKey?.reveal() ?? null }] : []),
  ]);
  const more = [
    ...(skipped ? [skipped] : []),
    ...(relay === undefined ? [] : [{ relay }]),
    ...(spread ? [{ spread }] : []),
    ...(rules ? [{ rules }] : []),
    ...(routeDns ? [{ routeDns }] : []),
  ];
  const text = JSON.stringify([id, name, cidr, routes, listed, ...more]);
  return digestOf(text, 16);
}

function lists(map: NetworkMap, self: readonly PublicKey[]): boolean {
  return map.peers.some((peer) => self.includes(peer.publicKey));
}

function countOthers(map: NetworkMap, self: readonly PublicKey[]): number {
  return map.peers.filter((peer) => !self.includes(peer.publicKey)).length;
}
