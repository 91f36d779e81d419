import { digestOf } from '../crypto/keys.ts';
import type { Id, PeerId } from '../map/model.ts';
import { type Address, covers, hostPrefix, type Prefix, parseAddress, restorePrefix } from '../net/cidr.ts';

/** The range of all probe addresses: the kernel routes it into each interface with IPv6. */
export const probeRange = restorePrefix('fe80::/64');
/** All link-local addresses (RFC 4291). */
export const linkLocal = restorePrefix('fe80::/10');

/**
 * The link-local IPv6 address of a peer inside the tunnel. Hosts send echoes to it over a path that
 * carries nothing else yet.
 *
 * Must not change between versions: a host finds the paths of an earlier version by it, and its
 * peers may have another version. The ids 1 and "1" get different addresses.
 */
export function probeAddressOf(network: Id, peer: PeerId): Address {
  const groups = digestOf(JSON.stringify([network, peer]), 8).match(/.{4}/g) ?? [];
  return parseAddress(`fe80:0:0:0:${groups.join(':')}`);
}

/** The prefix by which a peer under trial is reached, and by which a direct path is recognized. */
export function probePrefixOf(network: Id, peer: PeerId): Prefix {
  return hostPrefix(probeAddressOf(network, peer));
}

/** True if the prefix has nothing but probe addresses. */
export function isForProbes(prefix: Prefix): boolean {
  return covers(probeRange, prefix);
}
