import { type Address, addressAt, parsePrefix, rangeOf } from '../../../src/core/net/cidr.ts';

export const range = parsePrefix('10.77.0.0/16');
export const peers = 10_000;

/** The peers of a large network, with a label each. */
export function namedPeers(): { readonly address: Address; readonly labels: readonly string[] }[] {
  return Array.from({ length: peers }, (_, at) => ({
    address: addressAt(rangeOf(range).first + BigInt(at + 1)),
    labels: [`peer-${at}`],
  }));
}
