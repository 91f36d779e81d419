import type { Underlay } from '../host-state/actual.ts';
import type { NetworkMap, Peer } from '../map/model.ts';
import { type Address, hostPrefix } from '../net/cidr.ts';

/** A peer whose address is on another interface of this host, and who cannot be reached therefore. */
export interface HiddenPeer {
  readonly peer: Peer;
  readonly link: string;
}

/**
 * The peers whose very address this host has on another interface: a local address leads nowhere else. A network that was joined
 * later, and overlaps this one, brings such an address; a join refuses it, but a peer may come to have it afterwards.
 */
export function findHiddenPeers({ peers }: NetworkMap, own: Address, { connected }: Underlay): HiddenPeer[] {
  const links = new Map(connected.map(({ prefix, link }) => [prefix, link]));
  return peers.flatMap((peer) => {
    const link = links.get(hostPrefix(peer.address));
    return link === undefined || peer.address === own ? [] : [{ peer, link }];
  });
}
