import { acceptance, describeClaim, describeDifference, findClaims } from '../core/claims.ts';
import type { PeerId } from '../core/model.ts';
import type { Joined } from '../store/state.ts';
import type { PeerStatus } from './status.ts';

/** What nobody accepted yet of what the service says, a sentence each. */
export function describeClaims({ membership, pins, options, interface: link }: Joined): string[] {
  return findClaims(membership.map, pins).map((claim) => describeClaim(claim, options.pin, link));
}

/** Looks up what `cpn status` tells of a peer's pin. */
export function claimFinder({ membership, pins, options, interface: link }: Joined) {
  const claims = new Map(findClaims(membership.map, pins).map((claim) => [claim.claimed.peer, claim]));
  return (id: PeerId): Pick<PeerStatus, 'pin' | 'claim' | 'claimedPublicKey'> => {
    const claim = claims.get(id);
    if (claim === undefined) return { pin: 'ok', claim: null, claimedPublicKey: null };
    return {
      pin: options.pin === 'strict' ? 'held' : 'changed',
      claim: `${describeDifference(claim)}; if that is right, "${acceptance(claim, link)}"`,
      claimedPublicKey: claim.claimed.publicKey,
    };
  };
}
