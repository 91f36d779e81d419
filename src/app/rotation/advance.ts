import { proveKey } from '../../core/crypto/identity.ts';
import { CpnError, NotRotated, RotationPending, Unreachable } from '../../core/errors/index.ts';
import { isFresh } from '../../core/health/peer-health.ts';
import type { Peer } from '../../core/map/model.ts';
import { listOwnPeer } from '../../core/map/own-peer.ts';
import { isNamesStep } from '../../core/reconcile/step.ts';
import type { ConfirmingPeerKey, Joined, Rotation } from '../../store/state/state.ts';
import { applySteps } from '../reconcile/apply.ts';
import type { ConfirmOptions } from '../reconcile/await-confirmation.ts';
import { awaitHandshakes, findAwaitedPeers, type HandshakeQuery } from '../reconcile/await-handshakes.ts';
import { isInterrupted, throwIfInterrupted } from '../reconcile/confirm.ts';
import { type Evaluation, evaluateNetwork } from '../reconcile/evaluate-network.ts';
import { readListedKey, registerKey } from '../register-key.ts';
import { isJoined } from '../select.ts';
import { secondsNow, type Tools } from '../tools.ts';
import { isRotating, type Rotating } from './begin.ts';

export interface RotationResult {
  readonly state: Joined;
  /** The first peer that answered to the new key; null if only the control plane confirms it. */
  readonly answered: Peer | null;
}

/** Milliseconds between the control plane's reply and the change here: others receive the key. */
const propagationMs = 100;
/** Milliseconds to search for the old sessions during a rollback. */
const recoveryMs = 5_000;
const mostConfirmingPeers = 64;

/**
 * Completes a rotation from any phase. Each phase is saved before it is taken, so a later run
 * completes it after a crash. The caller holds {@link HostStore.change}. Each phase takes the lock
 * separately: passes continue meanwhile, because awaited peers may rotate too.
 *
 * @param begin returns the rotation, under the lock, and whether it is new, so that no other host
 *   has received it; null for none
 * @returns null without a rotation, and if the network is down or no longer joined. Null also if
 *   `signal` aborted without a signal to this process: the rotation then continues later
 * @throws NotRotated if no peer answered, and the old key is in use again
 * @throws Interrupted if a signal arrived before that
 * @throws RotationPending if the control plane is unreachable now; the rotation continues later
 * @throws CannotRotate and Refused if the control plane does not accept the new key, and nothing
 *   changed
 */
export async function advanceRotation(
  tools: Tools,
  confirming: ConfirmOptions,
  begin: () => Promise<{ readonly state: Rotating; readonly isNew: boolean } | null>,
): Promise<RotationResult | null> {
  const { lock } = tools.store;
  const { signal } = confirming;
  const begun = await lock(async () => {
    const found = await begin();
    if (found === null) return null;
    const { state, isNew } = found;
    if (isNew && isInterrupted(signal)) await tools.store.write({ ...state, rotation: null });
    if (isNew) throwIfInterrupted(signal);
    const isReturning = state.rotation.phase === 'returning';
    const next: Joined = isReturning ? await rollBack(tools, state) : await activateNewKey(tools, state, isNew);
    return { next, witnesses: isRotating(next) ? next.rotation.witnesses : state.rotation.witnesses };
  });
  if (begun === null) return null;
  const { next, witnesses: confirmingPeers } = begun;
  const asking = queryAll(tools, next.interface, confirmingPeers);
  if (!isRotating(next)) return finishRollback(tools, asking, confirming);
  const isAnswerable = (await asking.find()).length > 0;
  if (isAnswerable) tools.progress('waiting for a peer to complete a handshake with the new key');
  const answered = isAnswerable ? await awaitHandshakes(tools, asking, confirming) : null;
  const ended = await lock(() => end(tools, next, answered !== null || !isAnswerable, confirming));
  if (ended === null || isRotating(ended)) return null;
  if (ended.keyPair.publicKey === next.keyPair.publicKey) return { state: ended, answered };
  return finishRollback(tools, asking, confirming);
}

/** Activates the new key, once the control plane lists it. */
async function activateNewKey(tools: Tools, state: Rotating, isNew: boolean): Promise<Rotating> {
  const isAnnounced = state.rotation.phase === 'confirming';
  const planned = isAnnounced ? await evaluateNetwork(tools, state) : await announce(tools, state, isNew);
  await applyDirectly(tools, planned);
  return planned.state as Rotating;
}

/**
 * Completes a rotation, or reverts it, from the state on disk.
 *
 * @returns the resulting state; still rotating if it continues later, and null without a network
 */
async function end(
  tools: Tools,
  { interface: link, rotation: begun }: Rotating,
  isConfirmed: boolean,
  { signal }: ConfirmOptions,
): Promise<Joined | null> {
  const state = await tools.store.read(link);
  if (state === null || !isJoined(state)) return null;
  // An earlier version's daemon does not take the lock of changes, and may have completed it.
  if (!isRotating(state) || state.rotation.begunAt !== begun.begunAt) return state;
  if (isConfirmed) return conclude(tools, state);
  const isForLater = signal?.aborted && !isInterrupted(signal);
  return isForLater || !state.enabled ? state : abandon(tools, state);
}

/** Restores the old sessions, and throws why the old key is in use. */
async function finishRollback(
  tools: Pick<Tools, 'host' | 'monotonic' | 'sleep'>,
  asking: HandshakeQuery,
  { withinMs, signal }: ConfirmOptions,
): Promise<never> {
  await awaitHandshakes(tools, asking, { withinMs: recoveryMs, ...(signal && !isInterrupted(signal) && { signal }) });
  throwIfInterrupted(signal);
  throw new NotRotated(asking.link, withinMs);
}

/** Queries the peers with the wg-quick file's entries: a pass may have changed the interface. */
function queryAll(
  tools: Pick<Tools, 'store' | 'savedConfigs'>,
  link: string,
  confirmingPeers: readonly ConfirmingPeerKey[],
): HandshakeQuery {
  return {
    link,
    exclusively: (work) => tools.store.lock(work),
    async find() {
      const state = await tools.store.read(link);
      const saved = await tools.savedConfigs.read(tools.store, link);
      return state && isJoined(state) && state.enabled && saved
        ? findAwaitedPeers(state.membership.map, saved.peers, confirmingPeers)
        : [];
    },
  };
}

/** Registers the new key, after all else is saved: hosts must switch within a short time. */
async function announce(tools: Tools, state: Rotating, isNew: boolean): Promise<Evaluation> {
  const { rotation, interface: link } = state;
  const next = (confirmingPeers: readonly ConfirmingPeerKey[]): Rotating => ({
    ...state,
    keyPair: rotation.keyPair,
    rotation: { ...rotation, phase: 'confirming', keyPair: state.keyPair, witnesses: confirmingPeers },
  });
  const evaluation = await evaluateNetwork(tools, next([]));
  const planned = { ...evaluation, state: next(findConfirmingKeys(evaluation, secondsNow(tools))) };
  tools.progress(`registering the new key of ${link}`);
  try {
    await registerKey(tools, state, rotation.keyPair.publicKey, rotation.proof);
  } catch (error) {
    await checkRefusal(tools, state, error, isNew);
  }
  await tools.store.write(planned.state);
  await tools.store.writeConfig(link, planned.config);
  await tools.sleep(propagationMs);
  return planned;
}

/** Throws unless the new key is listed despite the error. Drops a rotation not carried out. */
async function checkRefusal(
  tools: Pick<Tools, 'store' | 'connect'>,
  state: Rotating,
  error: unknown,
  isNew: boolean,
): Promise<void> {
  const { rotation, interface: link } = state;
  if (!(error instanceof CpnError)) throw error;
  const isUntold = error instanceof Unreachable && isNew && !error.delivered;
  if (error instanceof Unreachable && !isUntold) throw new RotationPending(link, error.message, error);
  // An earlier attempt, whose reply was lost, may have been carried out.
  const listed = isUntold ? null : await readListedKey(tools, state);
  if (listed === rotation.keyPair.publicKey) return;
  await tools.store.write({ ...state, rotation: null });
  throw error;
}

/**
 * Applies an evaluation without observing again, and without names, which take seconds: every
 * moment counts. The next pass applies and records them.
 */
async function applyDirectly(tools: Tools, planned: Evaluation): Promise<void> {
  const { state, config } = planned;
  const { interface: link } = state;
  await applySteps(tools, { ...planned, steps: planned.steps.filter((step) => !isNamesStep(step)) });
  if ((await tools.store.readConfig(link)) !== config) await tools.store.writeConfig(link, config);
}

/** The peers with a live session. */
function findConfirmingKeys({ state, actual, desired }: Evaluation, now: number): readonly ConfirmingPeerKey[] {
  const wanted = new Set(desired.config.peers.map((peer) => peer.publicKey));
  const ids = new Map(state.membership.map.peers.map(({ publicKey, id }) => [publicKey, id]));
  return (actual.device?.peers ?? [])
    .flatMap(({ publicKey, latestHandshake }): ConfirmingPeerKey[] => {
      const isAlive = latestHandshake !== null && isFresh(latestHandshake, now);
      return isAlive && wanted.has(publicKey) ? [{ publicKey, latestHandshake, peer: ids.get(publicKey) }] : [];
    })
    .toSorted((one, other) => other.latestHandshake - one.latestHandshake)
    .slice(0, mostConfirmingPeers);
}

async function conclude(tools: Pick<Tools, 'store'>, state: Rotating): Promise<Joined> {
  const { rotation, keyPair, keySerial } = state;
  const { begunAt, proof } = rotation;
  const done = listedAs(state, keyPair, proof, { keySince: begunAt, keySerial: proof?.serial ?? keySerial });
  await tools.store.write(done);
  return done;
}

/** Returns the state without a rotation; its map lists that key until the next request. */
function listedAs(
  state: Rotating,
  keyPair: Joined['keyPair'],
  proof: Rotation['proof'],
  changes: Partial<Joined> = {},
): Joined {
  const map = listOwnPeer(state.membership.map, state, keyPair.publicKey, proof);
  return { ...state, ...changes, keyPair, rotation: null, membership: { ...state.membership, map } };
}

async function abandon(tools: Tools, state: Rotating): Promise<Joined> {
  const { rotation, identity, keySerial } = state;
  const after = rotation.proof?.serial ?? keySerial;
  const wayBack = identity && proveKey(identity, rotation.keyPair.publicKey, tools.now(), after);
  const returning: Rotating = { ...state, rotation: { ...rotation, phase: 'returning', wayBack } };
  await tools.store.write(returning);
  return rollBack(tools, returning);
}

/**
 * Registers the old key again, and only then activates it: other hosts would not accept it before.
 * If the control plane refuses that, the new key stays.
 */
async function rollBack(tools: Tools, state: Rotating): Promise<Joined> {
  const { rotation, keySerial, interface: link } = state;
  const { keyPair, wayBack } = rotation;
  tools.progress(`restoring the old key of ${link}`, 'open');
  try {
    await registerKey(tools, state, keyPair.publicKey, wayBack);
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    if (error instanceof Unreachable) {
      // If nothing was sent, the new key is still listed, and an answer to it still counts.
      if (!error.delivered) await tools.store.write({ ...state, rotation: { ...rotation, phase: 'confirming' } });
      throw new RotationPending(link, `no peer completed a handshake with the new key, and ${error.message}`, error);
    }
    const listed = await readListedKey(tools, state);
    if (listed !== keyPair.publicKey) {
      await conclude(tools, state);
      throw error;
    }
  }
  const back = listedAs(state, keyPair, wayBack, { keySerial: wayBack?.serial ?? keySerial });
  const planned = await evaluateNetwork(tools, { ...back, rotation: { ...rotation, keyPair: state.keyPair } });
  await tools.store.write(back);
  await applyDirectly(tools, planned);
  return back;
}
