import { type Address, addressAt, type Prefix, rangeOf } from '../../core/net/cidr.ts';

export interface Pool {
  readonly range: Prefix;
  /** The number of addresses that were assigned for the first time. */
  readonly given: number;
  /** The free address that was released first. */
  readonly returned: Address | null;
}

export interface Allocation {
  readonly address: Address;
  /** True for an address that no peer had before. */
  readonly fresh: boolean;
}

/** The number of peers that fit in a range: all addresses except the first and the last. */
export function capacityOf(range: Prefix): number {
  const { first, last } = rangeOf(range);
  return Math.max(0, Number(last - first) - 1);
}

/**
 * The address for the next peer, or null if the range is full. Released addresses come last: a host
 * with an old map could mistake the next holder of an address for the last one.
 */
export function allocate({ range, given, returned }: Pool): Allocation | null {
  if (given < capacityOf(range)) {
    return { address: addressAt(rangeOf(range).first + 1n + BigInt(given)), fresh: true };
  }
  return returned === null ? null : { address: returned, fresh: false };
}
