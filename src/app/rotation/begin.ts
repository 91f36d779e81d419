import { CannotRotate, WrongUsage } from '../../core/errors.ts';
import { proveKey } from '../../core/identity.ts';
import { makeKeyPair } from '../../core/keys.ts';
import { findOwnPeer } from '../../core/own-peer.ts';
import type { Joined, Rotation } from '../../store/state.ts';
import { accessOf } from '../access.ts';
import { save } from '../apply.ts';
import { applyKnown, type Confirming } from '../confirm.ts';
import { survey } from '../survey.ts';
import type { Tools } from '../tools.ts';
import { cannotAsk } from './register-key.ts';

/** A network whose keys are being changed. */
export type Rotating = Joined & { readonly rotation: Rotation };

export function isRotating(state: Joined): state is Rotating {
  return state.rotation !== null;
}

/**
 * Makes a new key pair and its proof, and saves them before anybody hears of them. The host is first made what it should be, so
 * that the key alone is left to change.
 *
 * @throws CannotRotate where nobody would learn of a new key
 * @throws WrongUsage when the network is down
 */
export async function beginRotation(tools: Tools, state: Joined, confirming: Confirming): Promise<Rotating> {
  const { interface: link, service, identity, keySerial } = state;
  if (!state.enabled) throw new WrongUsage(`${link} is down; "cpn up ${link}" first`);
  if (accessOf(state) === null) throw cannotAsk(state);
  const self = findOwnPeer(state.membership.map, state);
  if (self === undefined || self.unlisted) {
    throw new CannotRotate(link, `${service.url} does not list this host`, 'no other host would learn of a new key');
  }
  const planned = await survey(tools, state);
  const applied = await applyKnown(tools, planned, state, confirming);
  await save(tools, applied, state, planned);
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
  throw new CannotRotate(link, 'the disk does not take the new one', 'see "cpn doctor", and try again');
}
