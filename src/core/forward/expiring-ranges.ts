import type { Peer } from '../map/model.ts';
import { type Address, addressIn, comparePrefixes, familyOf, hostPrefix, type Prefix, rangeOf } from '../net/cidr.ts';

/** Addresses refused from an instant on: milliseconds since 1970 by the service's clock. */
export interface ExpiringRange {
  readonly first: Address;
  readonly last: Address;
  readonly at: number;
}

/** A peer of the tunnel, and the prefixes that WireGuard has for it. */
export interface TunnelPeer {
  readonly peer: Pick<Peer, 'id' | 'address' | 'expiresAt'>;
  readonly allowedIps: readonly Prefix[];
}

/**
 * Returns the ranges of expiring peers, sorted, without overlaps: allowed IPs and addresses. The
 * longest prefix wins as in WireGuard, so another peer keeps its prefix inside one of an expiring
 * peer. `expiring` includes listed peers that left the tunnel.
 */
export function findExpiringRanges(
  tunnel: readonly TunnelPeer[],
  expiring: readonly TunnelPeer['peer'][],
): readonly ExpiringRange[] {
  const held = tunnel.flatMap(({ peer, allowedIps }) =>
    allowedIps.map((prefix): Deadline => ({ prefix, at: peer.expiresAt ?? never, isAddress: false })),
  );
  const addresses = expiring.map(
    ({ address, expiresAt }): Deadline => ({ prefix: hostPrefix(address), at: expiresAt ?? never, isAddress: true }),
  );
  // The sort is stable: an address comes after the same prefix in allowed IPs.
  const deadlines = [...held, ...addresses].toSorted((a, b) => comparePrefixes(a.prefix, b.prefix));
  return families.flatMap((family) => flatten(deadlines.filter(({ prefix }) => familyOf(prefix) === family)));
}

const never = Number.POSITIVE_INFINITY;
const families = [4, 6] as const;

interface Deadline {
  readonly prefix: Prefix;
  readonly at: number;
  /** True for a peer's own address. If another peer relays it, the earlier deadline wins. */
  readonly isAddress: boolean;
}

/**
 * Converts prefixes of one family, each before the prefixes inside it, to ranges with the deadline
 * of the longest prefix.
 */
function flatten(deadlines: readonly Deadline[]): ExpiringRange[] {
  const ranges: ExpiringRange[] = [];
  /** The prefixes that contain `next`, the longest one last. */
  const covering: { readonly prefix: Prefix; readonly at: number }[] = [];
  let next = 0n;
  const advancePast = (last: bigint) => {
    const inner = covering.at(-1);
    if (inner && next <= last && inner.at !== never) {
      const family = familyOf(inner.prefix);
      ranges.push({ first: addressIn(family, next), last: addressIn(family, last), at: inner.at });
    }
    next = last + 1n;
  };
  const leaveBefore = (first: bigint) => {
    for (let inner = covering.at(-1); inner && rangeOf(inner.prefix).last < first; inner = covering.at(-1)) {
      advancePast(rangeOf(inner.prefix).last);
      covering.pop();
    }
  };
  for (const { prefix, at, isAddress } of deadlines) {
    const { first } = rangeOf(prefix);
    leaveBefore(first);
    advancePast(first - 1n);
    covering.push({ prefix, at: Math.min(at, isAddress ? (covering.at(-1)?.at ?? never) : never) });
  }
  leaveBefore(1n << 128n);
  return ranges;
}
