import {
  findSecretMismatches as compareAll,
  type SecretMismatch,
  type SecretView,
} from '../../core/health/compare-secrets.ts';
import type { Actual } from '../../core/host-state/actual.ts';
import type { Peer, PeerId } from '../../core/map/model.ts';
import { ownKeys } from '../../core/map/own-peer.ts';
import { acceptCommand, describeDifference, findPinMismatches } from '../../core/pins/pin-mismatch.ts';
import type { Joined } from '../../store/state/state.ts';
import { ownTag } from '../report-secret.ts';
import type { Tools } from '../tools.ts';
import type { PeerStatus } from './network-status.ts';

/** The view from which this host compares its network secret with its peers'. */
export function viewSecrets(state: Joined, { device }: Pick<Actual, 'device'>): SecretView {
  return { map: state.membership.map, tag: ownTag(state), observed: device?.peers ?? [] };
}

/** Finds peers that cannot complete a handshake because their network secret differs. */
export function findSecretMismatches(state: Joined, actual: Pick<Actual, 'device'>): SecretMismatch[] {
  return compareAll(viewSecrets(state, actual), othersOf(state));
}

function othersOf(state: Joined): Peer[] {
  const own = ownKeys(state);
  return state.membership.map.peers.filter(({ publicKey }) => !own.includes(publicKey));
}

/** Like {@link findSecretMismatches}, but observes the device; nothing is read without peers. */
export async function checkSecrets(tools: Pick<Tools, 'host'>, state: Joined): Promise<SecretMismatch[]> {
  if (othersOf(state).length === 0) return [];
  return findSecretMismatches(state, { device: await tools.host.device(state.interface) });
}

/** Returns a function that finds a peer's pin state for `cpn status`. */
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
