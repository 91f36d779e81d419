import type { PublicKey } from '../crypto/keys.ts';
import type { ActualPeer } from '../host-state/actual.ts';
import type { NetworkMap } from '../map/model.ts';
import { hostPrefix } from '../net/cidr.ts';

/**
 * Returns the peer that relays the packets for each peer that does not receive them directly, by
 * the keys of both.
 *
 * @param reached the peers that receive packets directly, each with its allowed IPs
 */
export function findRelays(
  { cidr, peers }: Pick<NetworkMap, 'cidr' | 'peers'>,
  reached: readonly Pick<ActualPeer, 'publicKey' | 'allowedIps'>[],
): ReadonlyMap<PublicKey, PublicKey> {
  const owners = new Map(
    reached.flatMap(({ publicKey, allowedIps }) => allowedIps.map((prefix) => [prefix, publicKey])),
  );
  const direct = new Set(reached.map(({ publicKey }) => publicKey));
  return new Map(
    peers.flatMap(({ publicKey, address }) => {
      const own = owners.get(hostPrefix(address)) ?? null;
      const owner = own ?? (direct.has(publicKey) ? null : owners.get(cidr));
      return owner == null || owner === publicKey ? [] : [[publicKey, owner]];
    }),
  );
}
