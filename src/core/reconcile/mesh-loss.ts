import type { Actual } from '../host-state/actual.ts';
import type { NetworkMap, Peer } from '../map/model.ts';
import { covers, formatInterfaceAddress, type InterfaceAddress, maskPrefix, type Prefix } from '../net/cidr.ts';
import type { DesiredPeer } from '../wg-quick/parse.ts';

/** Address and peers of a tunnel, before or after a change. */
export interface Tunnel {
  readonly address: InterfaceAddress;
  readonly peers: readonly Pick<DesiredPeer, 'publicKey' | 'allowedIps'>[];
}

/** The peers of the map in use, and of the map to be applied. */
export interface ComparedPeers {
  readonly known: readonly Peer[];
  readonly newest: readonly Peer[];
  /** True if a peer that is no longer listed counts as removed by the service, and not as lost. */
  readonly isBelieved: boolean;
}

/**
 * The tunnel of the interface as it is, for a host without a last-known-good file; null if the
 * interface lacks this address.
 */
export function presentTunnel({ link, device }: Pick<Actual, 'link' | 'device'>, own: InterfaceAddress): Tunnel | null {
  const address = link?.addresses.find((each) => each.address === own.address);
  return address && device ? { address, peers: device.peers } : null;
}

/** Describes the loss of the own address, the range, or more than half of the peers; else null. */
export function findMeshLoss(before: Tunnel, after: Tunnel, listing: ComparedPeers): string | null {
  if (before.address.address !== after.address.address) return `this host's own address ${before.address.address}`;
  const range = rangeOf(before);
  if (!covers(rangeOf(after), range)) return `the network's range ${range}`;
  const peers = before.peers.filter(({ allowedIps }) => allowedIps.length > 0);
  const kept = new Map(after.peers.map((peer) => [peer.publicKey, peer]));
  // Most changes keep most peers, so this check usually suffices.
  if (peers.filter(({ publicKey }) => kept.get(publicKey)?.allowedIps.length).length * 2 >= peers.length) return null;
  const successorOf = findSuccessors(listing);
  const successors = peers
    .map(({ publicKey }) => successorOf(publicKey))
    .filter((successor) => successor !== undefined && (successor !== null || !listing.isBelieved));
  const lost = successors.filter((successor) => {
    const stays = successor && kept.get(successor.publicKey);
    // A peer that is reached through a relay for the moment has no allowed IPs, but is not lost.
    return !stays || (stays.allowedIps.length === 0 && !isReached(successor.address, after));
  });
  return lost.length * 2 > successors.length ? `${lost.length} of ${successors.length} peers` : null;
}

/** True if the tunnel takes packets to this address. */
export function isReached(address: Peer['address'], { peers }: Pick<Tunnel, 'peers'>): boolean {
  return peers.some(({ allowedIps }) => allowedIps.some((prefix) => covers(prefix, address)));
}

/**
 * Returns a function from a key to the listed peer that has it, or that replaced it: null if that
 * peer is no longer listed, undefined if the key is in neither map.
 */
function findSuccessors({ known, newest }: ComparedPeers): (publicKey: Peer['publicKey']) => Peer | null | undefined {
  const before = new Map(known.map((peer) => [peer.publicKey, peer]));
  const byKey = new Map(newest.map((peer) => [peer.publicKey, peer]));
  const byId = new Map(newest.map((peer) => [peer.id, peer]));
  return (publicKey) => {
    const peer = before.get(publicKey);
    return byKey.get(publicKey) ?? (peer && (byId.get(peer.id) ?? null));
  };
}

/**
 * True if `newer` lists less than half of the peers of `known` other than this host, by id or key.
 */
export function dropsMost(known: NetworkMap, newer: NetworkMap, self: readonly Peer['publicKey'][]): boolean {
  const others = known.peers.filter((peer) => !self.includes(peer.publicKey));
  const successorOf = findSuccessors({ known: others, newest: newer.peers, isBelieved: false });
  return others.filter(({ publicKey }) => successorOf(publicKey) === null).length * 2 > others.length;
}

function rangeOf({ address }: Tunnel): Prefix {
  return maskPrefix(formatInterfaceAddress(address));
}
