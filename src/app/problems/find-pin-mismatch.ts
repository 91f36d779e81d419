import type { PeerId } from '../../core/map/model.ts';
import { acceptCommand, describeDifference, findPinMismatches } from '../../core/pins/pin-mismatch.ts';
import type { Joined } from '../../store/state/state.ts';
import type { PeerStatus } from './network-status.ts';

/** Finds what `cpn status` shows of a peer's pin. */
export function pinMismatchFinder({ membership, pins, options, interface: link }: Joined) {
  const mismatches = new Map(
    findPinMismatches(membership.map, pins).map((mismatch) => [mismatch.claimed.peer, mismatch]),
  );
  return (id: PeerId): Pick<PeerStatus, 'pin' | 'claim' | 'claimedPublicKey'> => {
    const mismatch = mismatches.get(id);
    if (mismatch === undefined) return { pin: 'ok', claim: null, claimedPublicKey: null };
    return {
      pin: options.pin === 'strict' ? 'held' : 'changed',
      claim: `${describeDifference(mismatch)}; if that is right, "${acceptCommand(mismatch.pin.address, link)}"`,
      claimedPublicKey: mismatch.claimed.publicKey,
    };
  };
}
