import type { Underlay } from '../../host-state/actual.ts';
import type { NetworkMap, Peer } from '../../map/model.ts';
import { type Address, hostPrefix } from '../../net/cidr.ts';

/** A peer that cannot be reached because its address is on another interface of this host. */
export interface HiddenPeer {
  readonly peer: Peer;
  readonly link: string;
}

/**
 * Finds the peers whose address this host has on another interface. The kernel delivers packets to
 * a local address locally. A join refuses such a conflict, but an overlapping network that is
 * joined later can cause it.
 */
export function findHiddenPeers({ peers }: NetworkMap, own: Address, { connected }: Underlay): HiddenPeer[] {
  const links = new Map(connected.map(({ prefix, link }) => [prefix, link]));
  return peers.flatMap((peer) => {
    const link = links.get(hostPrefix(peer.address));
    return link === undefined || peer.address === own ? [] : [{ peer, link }];
  });
}
