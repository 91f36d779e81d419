import type { NetworkMap } from '../map/model.ts';
import type { Address } from '../net/cidr.ts';

/** Packets that the packet filter of a closed network refused on this host. */
export interface RefusedTraffic {
  /** From the tunnel, and toward it, since the packet rules were last loaded as a whole. */
  readonly packets: { readonly in: number; readonly out: number };
  /** A sample of the last five minutes, the latest first. */
  readonly latest: readonly RefusedConnection[];
}

export interface RefusedConnection {
  readonly from: Address;
  readonly to: Address;
  readonly protocol: 'tcp' | 'udp';
  readonly port: number;
  /** Since its latest packet. */
  readonly seconds: number;
}

/** The address of this host, and the map by which addresses have names. */
export interface AddressNames {
  readonly map: Pick<NetworkMap, 'peers'>;
  readonly own: Address;
}

/** Describes a connection, with the names of peers as far as the map has their addresses. */
export function describeRefused({ from, to, protocol, port }: RefusedConnection, { map, own }: AddressNames): string {
  const nameOf = (address: Address) =>
    address === own ? 'this host' : (map.peers.find((peer) => peer.address === address)?.name ?? address);
  return `${nameOf(from)} → ${nameOf(to)} ${protocol} ${port}`;
}
