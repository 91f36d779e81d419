import { CpnError, NotRotated, RotationPending, Unreachable } from '../../core/errors.ts';
import { isFresh } from '../../core/health.ts';
import { proveKey } from '../../core/identity.ts';
import type { Peer } from '../../core/model.ts';
import { listOwnPeer } from '../../core/own-peer.ts';
import type { Joined, Rotation, Witness } from '../../store/state.ts';
import { applySteps } from '../apply.ts';
import { type Confirming, isInterrupted, throwIfInterrupted } from '../confirm.ts';
import { parseSaved } from '../saved-config.ts';
import { isJoined } from '../select.ts';
import { type Survey, survey } from '../survey.ts';
import { secondsNow, type Tools } from '../tools.ts';
import { type Asking, awaitAnswers, findAsked } from './await-answers.ts';
import { isRotating, type Rotating } from './begin.ts';
import { readListedKey, registerKey } from './register-key.ts';

/** A change of keys that came to its end. */
export interface Rotated {
  readonly state: Joined;
  /** Who answered to the new key first; null where nobody had answered before, and the control plane's word stands for it. */
  readonly answered: Peer | null;
}

/** Milliseconds from the control plane's reply to the change here: in them it tells the others, who are told of changes at once. */
const learning = 100;
/** Milliseconds in which the old sessions are sought again on the way back. */
const recovering = 5_000;
/** Peers that are waited for, at the most. */
const mostWitnesses = 64;

/** A change of keys to bring to its end, and whether it was begun just now, so that nobody was told of it before. */
export interface Begun {
  readonly state: Rotating;
  readonly isNew: boolean;
}

/**
 * Brings a change of keys to its end from wherever it is. Each step is saved before it is taken, so that it can go on after any crash. It
 * is for the one that holds {@link Store.change}. The lock is held for its steps alone: while it waits for answers, passes go by newer
 * maps, because the peers may be changing their keys too.
 *
 * @param begin gives the change, under the lock; null for none
 * @returns null where there is none, the network is down or not joined any more, or `signal` aborted without a signal to this process:
 *   it goes on later
 * @throws NotRotated when nobody answered, and the old key is in use again; Interrupted when a signal came before that
 * @throws RotationPending when the control plane cannot be asked now: it goes on later
 * @throws CannotRotate and Refused when the control plane does not take the new key, and nothing was changed
 */
export async function advance(
  tools: Tools,
  confirming: Confirming,
  begin: () => Promise<Begun | null>,
): Promise<Rotated | null> {
  const { lock } = tools.store;
  const { signal } = confirming;
  const begun = await lock(async () => {
    const found = await begin();
    if (found === null) return null;
    const { state, isNew } = found;
    if (isNew && isInterrupted(signal)) await tools.store.write({ ...state, rotation: null });
    if (isNew) throwIfInterrupted(signal);
    const isReturning = state.rotation.phase === 'returning';
    const next: Joined = isReturning ? await goBack(tools, state) : await switchOver(tools, state, isNew);
    return { next, witnesses: isRotating(next) ? next.rotation.witnesses : state.rotation.witnesses };
  });
  if (begun === null) return null;
  const { next, witnesses } = begun;
  const asking = askAll(tools, next.interface, witnesses);
  if (!isRotating(next)) return endBack(tools, asking, confirming);
  const isAnswerable = (await asking.find()).length > 0;
  if (isAnswerable) tools.progress('waiting for a peer to answer to the new key');
  const answered = isAnswerable ? await awaitAnswers(tools, asking, confirming) : null;
  const ended = await lock(() => end(tools, next, answered !== null || !isAnswerable, confirming));
  if (ended === null || isRotating(ended)) return null;
  if (ended.keyPair.publicKey === next.keyPair.publicKey) return { state: ended, answered };
  return endBack(tools, asking, confirming);
}

/** Puts the new key into use, once the control plane lists it. */
async function switchOver(tools: Tools, state: Rotating, isNew: boolean): Promise<Rotating> {
  const isAnnounced = state.rotation.phase === 'confirming';
  const planned = isAnnounced ? await survey(tools, state) : await announce(tools, state, isNew);
  await makeSo(tools, planned);
  return planned.state as Rotating;
}

/**
 * Concludes a change, or goes back, from what it is by now.
 *
 * @returns the state then; still in the middle of the change where it goes on later, and null where there is no network any more
 */
async function end(
  tools: Tools,
  { interface: link, rotation: begun }: Rotating,
  isConfirmed: boolean,
  { signal }: Confirming,
): Promise<Joined | null> {
  const state = await tools.store.read(link);
  if (state === null || !isJoined(state)) return null;
  // A daemon of an earlier version does not know the lock of changes, and may have ended it.
  if (!isRotating(state) || state.rotation.begunAt !== begun.begunAt) return state;
  if (isConfirmed) return conclude(tools, state);
  const isForLater = signal?.aborted && !isInterrupted(signal);
  return isForLater || !state.enabled ? state : giveUp(tools, state);
}

/** Seeks the old sessions again, and throws why the old key is in use. */
async function endBack(tools: Tools, asking: Asking, { withinMs, signal }: Confirming): Promise<never> {
  await awaitAnswers(tools, asking, { withinMs: recovering, ...(signal && !isInterrupted(signal) && { signal }) });
  throwIfInterrupted(signal);
  throw new NotRotated(asking.link, withinMs);
}

/** Asks witnesses as the files say that the interface has them: a pass may have changed it since. */
function askAll(tools: Tools, link: string, witnesses: readonly Witness[]): Asking {
  return {
    link,
    exclusively: (work) => tools.store.lock(work),
    async find() {
      const state = await tools.store.read(link);
      const saved = parseSaved(link, await tools.store.readConfig(link));
      return state && isJoined(state) && state.enabled && saved
        ? findAsked(state.membership.map, saved.peers, witnesses)
        : [];
    },
  };
}

/** Has the new key listed; all that can be looked up and saved is, so that little is left between the others' change and ours. */
async function announce(tools: Tools, state: Rotating, isNew: boolean): Promise<Survey> {
  const { rotation, interface: link } = state;
  const next = (witnesses: readonly Witness[]): Rotating => ({
    ...state,
    keyPair: rotation.keyPair,
    rotation: { ...rotation, phase: 'confirming', keyPair: state.keyPair, witnesses },
  });
  const looked = await survey(tools, next([]));
  const planned = { ...looked, state: next(findWitnesses(looked, secondsNow(tools))) };
  tools.progress(`registering the new key of ${link}`);
  try {
    await registerKey(tools, state, rotation.keyPair.publicKey, rotation.proof);
  } catch (error) {
    await judgeRefusal(tools, state, error, isNew);
  }
  await tools.store.write(planned.state);
  await tools.store.writeConfig(link, planned.config);
  await tools.sleep(learning);
  return planned;
}

/** Returns where the new key is listed in spite of an error, else throws; what was not carried out for certain is forgotten. */
async function judgeRefusal(tools: Tools, state: Rotating, error: unknown, isNew: boolean): Promise<void> {
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

/** Does what a survey says, without looking again: every moment counts. */
async function makeSo(tools: Tools, planned: Survey): Promise<void> {
  const { state, config } = planned;
  const { interface: link } = state;
  await applySteps(tools, planned);
  if ((await tools.store.readConfig(link)) !== config) await tools.store.writeConfig(link, config);
}

/** The peers with a living session. */
function findWitnesses({ state, actual, desired }: Survey, now: number): readonly Witness[] {
  const wanted = new Set(desired.config.peers.map((peer) => peer.publicKey));
  const ids = new Map(state.membership.map.peers.map(({ publicKey, id }) => [publicKey, id]));
  return (actual.device?.peers ?? [])
    .flatMap(({ publicKey, latestHandshake }): Witness[] => {
      const isAlive = latestHandshake !== null && isFresh(latestHandshake, now);
      return isAlive && wanted.has(publicKey) ? [{ publicKey, latestHandshake, peer: ids.get(publicKey) }] : [];
    })
    .toSorted((one, other) => other.latestHandshake - one.latestHandshake)
    .slice(0, mostWitnesses);
}

async function conclude(tools: Tools, state: Rotating): Promise<Joined> {
  const { rotation, keyPair, keySerial } = state;
  const { begunAt, proof } = rotation;
  const done = listedAs(state, keyPair, proof, { keySince: begunAt, keySerial: proof?.serial ?? keySerial });
  await tools.store.write(done);
  return done;
}

/** The state without a change of keys, until the service is asked again with this host under that key. */
function listedAs(
  state: Rotating,
  keyPair: Joined['keyPair'],
  proof: Rotation['proof'],
  changes: Partial<Joined> = {},
): Joined {
  const map = listOwnPeer(state.membership.map, state, keyPair.publicKey, proof);
  return { ...state, ...changes, keyPair, rotation: null, membership: { ...state.membership, map } };
}

async function giveUp(tools: Tools, state: Rotating): Promise<Joined> {
  const { rotation, identity, keySerial } = state;
  const after = rotation.proof?.serial ?? keySerial;
  const wayBack = identity && proveKey(identity, rotation.keyPair.publicKey, tools.now(), after);
  const returning: Rotating = { ...state, rotation: { ...rotation, phase: 'returning', wayBack } };
  await tools.store.write(returning);
  return goBack(tools, returning);
}

/**
 * Has the old key listed again, and only then makes it the host's: the others would not know it before. Where the control plane says
 * no to that, the new one stays.
 */
async function goBack(tools: Tools, state: Rotating): Promise<Joined> {
  const { rotation, keySerial, interface: link } = state;
  const { keyPair, wayBack } = rotation;
  tools.progress(`going back to the old key of ${link}`, 'open');
  try {
    await registerKey(tools, state, keyPair.publicKey, wayBack);
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    if (error instanceof Unreachable) {
      // Where nothing was sent the new key is listed still, and an answer to it still counts.
      if (!error.delivered) await tools.store.write({ ...state, rotation: { ...rotation, phase: 'confirming' } });
      throw new RotationPending(link, `no peer answered to the new key, and ${error.message}`, error);
    }
    const listed = await readListedKey(tools, state);
    if (listed !== keyPair.publicKey) {
      await conclude(tools, state);
      throw error;
    }
  }
  const back = listedAs(state, keyPair, wayBack, { keySerial: wayBack?.serial ?? keySerial });
  const planned = await survey(tools, { ...back, rotation: { ...rotation, keyPair: state.keyPair } });
  await tools.store.write(back);
  await makeSo(tools, planned);
  return back;
}
