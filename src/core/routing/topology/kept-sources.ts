import type { NetworkMap, Peer } from '../../map/model.ts';
import { dialsOnly, findOwnConnector, isDirect } from './via-connectors.ts';

/** Pairs of peers between which a connector forwards packets with their sender's address. */
export interface KeptSources {
  readonly from: readonly Peer[];
  readonly to: readonly Peer[];
  /**
   * True if each new connection keeps the address. Otherwise, only a TCP connection that began
   * through another relay keeps it: masquerading would end it.
   */
  readonly always: boolean;
}

/**
 * Finds the packets that keep their sender's address when `self` relays them. The receiver accepts
 * a source address only from the peer that has it in its allowed IPs. Hosts that derive these from
 * the map alone choose the same peer, so the result also depends on the map alone:
 * - The relay that the map names keeps addresses between hosts without an endpoint.
 * - It also keeps those of peers that may dial any connector.
 * - A connector keeps the addresses of the peers that dial only it, and all addresses toward them.
 * Each destination must follow the named relay. Peers that dial connectors are an exception: a
 * connector is their only peer.
 *
 * Another connector relays for hosts that get no answer from the named relay.
 */
export function findKeptSources(map: NetworkMap, self: Peer): KeptSources[] {
  if (map.relay === undefined) return [];
  const others = map.peers.filter(({ id }) => id !== self.id);
  // In a closed network, another relay would only hide who sends.
  const isNamed = map.rules !== undefined || (map.relay === self.id && !self.withdrawn.includes(map.cidr));
  const reached = others.filter((peer) => isDirect(peer, self, map));
  const followers = reached.filter((peer) => !peer.via && peer.followsRelay);
  const isHidden = ({ endpoint, via }: Peer) => endpoint === null && !via;
  const roaming = others.filter((peer) => peer.via && findOwnConnector(peer, map) === null);
  const dialling = others.filter((peer) => dialsOnly(peer, self));
  const devices = [...dialling, ...roaming].filter((peer) => reached.includes(peer));
  // A connector that can be dialled accepts the address of a roaming peer only from that peer.
  const isDialled = (peer: Peer) => peer.type === 'connector' && peer.endpoint !== null;
  return [
    { from: others.filter(isHidden), to: followers.filter(isHidden), always: isNamed },
    { from: roaming, to: followers.filter((peer) => !isDialled(peer)), always: isNamed },
    { from: dialling, to: followers, always: true },
    { from: others, to: devices, always: true },
  ].filter(({ from, to }) => from.length > 0 && to.length > 0);
}

/** True if `relay` forwards each packet between these peers with its sender's address. */
export function keepsSource(map: NetworkMap, relay: Peer, from: Peer, to: Peer): boolean {
  return findKeptSources(map, relay).some((kept) => kept.always && kept.from.includes(from) && kept.to.includes(to));
}
