import { proveKey } from '../../core/crypto/identity.ts';
import { makeKeyPair } from '../../core/crypto/keys.ts';
import { CannotRotate, WrongUsage } from '../../core/errors/index.ts';
import { findOwnPeer } from '../../core/map/own-peer.ts';
import { listNames } from '../../core/util/list-names.ts';
import type { Joined, Rotation } from '../../store/state/state.ts';
import { accessOf } from '../access.ts';
import { findDiallingDevices } from '../lan/dialling-devices.ts';
import { save } from '../reconcile/apply.ts';
import type { ConfirmOptions } from '../reconcile/await-confirmation.ts';
import { applyKnownMap } from '../reconcile/confirm.ts';
import { evaluateNetwork } from '../reconcile/evaluate-network.ts';
import { cannotQuery } from '../register-key.ts';
import type { Tools } from '../tools.ts';

export type Rotating = Joined & { readonly rotation: Rotation };

export function isRotating(state: Joined): state is Rotating {
  return state.rotation !== null;
}

/**
 * Creates a new key pair and its proof, and saves them before they are sent. The host is reconciled
 * first, so that only the key changes.
 *
 * @param accepted the names of devices that may lose this host: another device may have enrolled
 *   since the caller listed them
 * @throws CannotRotate if no other host would receive a new key, or if another device would lose
 *   this host
 * @throws WrongUsage if the network is down
 */
export async function beginRotation(
  tools: Tools,
  state: Joined,
  confirming: ConfirmOptions,
  accepted: readonly string[],
): Promise<Rotating> {
  const { interface: link, service, identity, keySerial } = state;
  if (!state.enabled) throw new WrongUsage(`${link} is down; "cpn up ${link}" first`);
  if (accessOf(state) === null) throw cannotQuery(state);
  const self = findOwnPeer(state.membership.map, state);
  if (self === undefined || self.unlisted) {
    throw new CannotRotate(link, `${service.url} does not list this host`, 'other hosts would not receive a new key');
  }
  const planned = await evaluateNetwork(tools, state);
  const applied = await applyKnownMap(tools, planned, state, confirming);
  await save(tools, applied, state, planned);
  const losing = (await findDiallingDevices(tools, applied)).filter((name) => !accepted.includes(name));
  if (losing.length > 0) {
    const problem = `devices that dial this connector alone (${listNames(losing)}) would lose the network`;
    throw new CannotRotate(link, problem, `to rotate it all the same, confirm that with "cpn rotate-key ${link}"`);
  }
  tools.progress(`making a new key pair for ${link}`);
  const keyPair = makeKeyPair(tools.random(32));
  const now = tools.now();
  const proof = identity && proveKey(identity, keyPair.publicKey, now, keySerial);
  const begunAt = now.toISOString();
  const rotation: Rotation = { phase: 'announcing', keyPair, proof, wayBack: null, begunAt, witnesses: [] };
  const begun: Rotating = { ...applied, rotation };
  await tools.store.write(begun);
  if (tools.store.isOnDisk(link)) return begun;
  await tools.store.write(applied);
  throw new CannotRotate(link, 'the new key cannot be saved', 'check the disk with "cpn doctor", and try again');
}
