import { type Address, addressAt, type Prefix, rangeOf } from '../../core/net/cidr.ts';

/** What must be known of a range to give out its next address. */
export interface Pool {
  readonly range: Prefix;
  /** How many addresses were ever given out for the first time. */
  readonly given: number;
  /** The address that came back longest ago and is free still. */
  readonly returned: Address | null;
}

export interface Allocation {
  readonly address: Address;
  /** True for an address that no peer had before. */
  readonly fresh: boolean;
}

/** How many peers fit in a range: all its addresses but the first and the last. */
export function capacityOf(range: Prefix): number {
  const { first, last } = rangeOf(range);
  return Math.max(0, Number(last - first) - 1);
}

/**
 * The address that the next peer gets, or null when the range is full. Addresses are given in order; one that came back
 * is given again only when there is no other, so that hosts with an old map do not take its next holder for the last.
 */
export function allocate({ range, given, returned }: Pool): Allocation | null {
  if (given < capacityOf(range)) {
    return { address: addressAt(rangeOf(range).first + 1n + BigInt(given)), fresh: true };
  }
  return returned === null ? null : { address: returned, fresh: false };
}
