import { type Address, maskPrefix, type Prefix } from './cidr.ts';

/** An address with its assigned prefix length. `10.77.0.5/24` keeps its host bits. */
export interface InterfaceAddress {
  readonly address: Address;
  readonly length: number;
}

/** The on-link range of an address, to which the kernel adds a route. Null for a /32. */
export function onLinkRange(address: InterfaceAddress): Prefix | null {
  return address.length === 32 ? null : maskPrefix(formatInterfaceAddress(address));
}

export function formatInterfaceAddress({ address, length }: InterfaceAddress): string {
  return `${address}/${length}`;
}
