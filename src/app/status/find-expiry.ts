import { describeExpiry, type Expiry } from '../../core/map/expiry.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import type { Joined } from '../../store/state/state.ts';

/** When this host expires, in milliseconds since 1970, by the newest map; undefined where it does not. */
export function findExpiry(state: Joined): number | undefined {
  return findOwnPeer(state.membership.map, state)?.expiresAt;
}

/** That this host leaves its network soon, or has left it; null where neither is so. */
export function findExpiryWarning(state: Joined, now: Date): Expiry | null {
  const { map, peer } = state.membership;
  return describeExpiry(findExpiry(state), now, {
    network: typeof map.id === 'number' ? map.id : 'NETWORK',
    peer: peer.id,
  });
}
