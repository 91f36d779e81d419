import type { KeyProof } from '../core/crypto/identity.ts';
import type { PublicKey } from '../core/crypto/keys.ts';
import { CannotRotate, CpnError, RotationPending, Unreachable } from '../core/errors/index.ts';
import type { NetworkMap } from '../core/map/model.ts';
import { findFormerSelf, findOwnPeer } from '../core/map/own-peer.ts';
import type { Joined } from '../store/state/state.ts';
import { accessOf } from './access.ts';
import { isJoined } from './select.ts';
import { withExtensions } from './service-features.ts';
import type { ServiceTools, Tools } from './tools.ts';

/** Milliseconds for one request to the control plane. */
const deadline = 10_000;

/**
 * Registers a public key of this host at the control plane. It is idempotent.
 *
 * @throws CannotRotate if the service does not support it
 * @throws Refused if the service refuses it
 */
export async function registerKey(
  tools: ServiceTools,
  state: Joined,
  publicKey: PublicKey,
  proof: KeyProof | null,
  { isLocked = true } = {},
): Promise<void> {
  const { service, interface: link, membership } = state;
  const access = accessOf(state);
  if (access === null) throw cannotQuery(state);
  const isTaken = await withExtensions(tools, state, { deadlineMs: deadline, isLocked }, (api) =>
    api.changeKey(access.network, membership.peer.id, access.token, publicKey, proof),
  );
  if (isTaken) return;
  throw new CannotRotate(link, `${service.url} does not take another key for a host that has joined`, rejoin);
}

export function cannotQuery({ service, interface: link }: Joined): CannotRotate {
  return new CannotRotate(link, `${service.url} gave this host no token to do it with`, rejoin);
}

const rejoin = 'to have a new key, leave the network and join it again';

/**
 * Returns the listed key of this host; null if none is listed, or the request is refused.
 *
 * @throws RotationPending if the control plane is unreachable now
 */
export async function readListedKey(tools: Pick<Tools, 'connect'>, state: Joined): Promise<PublicKey | null> {
  const access = accessOf(state);
  if (access === null) return null;
  try {
    const api = await tools.connect(state, { deadlineMs: deadline });
    const { map } = await api.readMap(access.network, access.token, null);
    return (map && findOwnPeer(map, state)?.publicKey) ?? null;
  } catch (error) {
    if (error instanceof Unreachable) throw new RotationPending(state.interface, error.message, error);
    if (error instanceof CpnError) return null;
    throw error;
  }
}

/**
 * Registers this host's key again if the service lists an earlier one, as after a restore from a
 * backup. The proof is the one that the service got when the key was new.
 *
 * @returns true if the service now lists the key; its map must be requested again
 * @throws the errors of {@link registerKey}
 */
export async function reclaimKey(tools: ServiceTools, asking: Joined, received: NetworkMap): Promise<boolean> {
  if (findOwnPeer(received, asking) !== undefined) return false;
  // The key may have changed during a long poll.
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
