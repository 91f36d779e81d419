import { type Address, maskPrefix, type Prefix } from './cidr.ts';

/** An address and the prefix length it is assigned with: `10.77.0.5/24` keeps its host bits. */
export interface InterfaceAddress {
  readonly address: Address;
  readonly length: number;
}

/** The range that is on-link with an address, to which the kernel makes a route; null for an address alone. */
export function onLinkRange(address: InterfaceAddress): Prefix | null {
  return address.length === 32 ? null : maskPrefix(formatInterfaceAddress(address));
}

export function formatInterfaceAddress({ address, length }: InterfaceAddress): string {
  return `${address}/${length}`;
}
