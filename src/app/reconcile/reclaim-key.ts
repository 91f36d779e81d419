import type { NetworkMap } from '../../core/map/model.ts';
import { findFormerSelf, findOwnPeer } from '../../core/map/own-peer.ts';
import type { Joined } from '../../store/state/state.ts';
import { registerKey } from '../rotation/register-key.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';

/**
 * Has the service list this host under its key again, where it lists it under an earlier one: a control plane that was restored from a
 * backup does. The proof is the one that the service got when the key was new.
 *
 * @returns true where the service lists the key now, and is to be asked for its map again
 * @throws what {@link registerKey} throws
 */
export async function reclaimKey(tools: Tools, asking: Joined, received: NetworkMap): Promise<boolean> {
  if (findOwnPeer(received, asking) !== undefined) return false;
  // The key may have changed while the answer was held back.
  const state = await tools.store.read(asking.interface);
  if (state === null || !isJoined(state) || findFormerSelf(received, state) === undefined) return false;
  const { membership, keyPair, interface: link } = state;
  const proof = findOwnPeer(membership.map, state)?.proof ?? null;
  await registerKey(tools, state, keyPair.publicKey, proof, { isLocked: false });
  tools.log.warn(
    { interface: link },
    'the control plane listed an earlier key of this host; it lists the present one again',
  );
  return true;
}
