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

/** A peer's entry in a map. */
interface NamedAddress {
  readonly name: string;
  readonly address: string;
}

/** Describes a connection, with the names of the peers that have its addresses. */
export function describeRefused(
  { from, to, protocol, port }: RefusedConnection,
  peers: readonly NamedAddress[],
  own: string | null,
): string {
  const nameOf = (address: string) => (address === own ? 'this host' : (findName(address, peers) ?? address));
  return `${nameOf(from)} → ${nameOf(to)} ${protocol} ${port}`;
}

/** Returns the name of the peer that has an address. */
export function findName(address: string, peers: readonly NamedAddress[]): string | undefined {
  return peers.find((peer) => peer.address === address)?.name;
}

/** Identifies a connection, whenever it was refused. */
export function identifyRefused({
  from,
  to,
  protocol,
  port,
}: Readonly<Record<'from' | 'to' | 'protocol', string>> & { readonly port: number }): string {
  return [from, to, protocol, port].join(' ');
}
