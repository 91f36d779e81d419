import { CpnError, NotRotated, RotationPending, Unreachable } from '../../core/errors.ts';
import { isFresh } from '../../core/health.ts';
import { proveKey } from '../../core/identity.ts';
import type { Peer } from '../../core/model.ts';
import { listOwnPeer } from '../../core/own-peer.ts';
import type { Joined, Rotation, Witness } from '../../store/state.ts';
import { applySteps } from '../apply.ts';
import type { Confirming } from '../confirm.ts';
import { type Survey, survey } from '../survey.ts';
import { secondsNow, type Tools } from '../tools.ts';
import { awaitAnswers } from './await-answers.ts';
import type { Rotating } from './begin.ts';
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

/**
 * Brings a change of keys to its end from wherever it is, under the lock. Each step is saved before it is taken, so that it can
 * go on after any crash.
 *
 * @param isNew true when it was begun by this very call, so that nobody was told of it before
 * @returns null when `signal` aborted: it goes on later
 * @throws NotRotated when nobody answered, and the old key is in use again
 * @throws RotationPending when the control plane cannot be asked now: it goes on later
 * @throws CannotRotate and Refused when the control plane does not take the new key, and nothing was changed
 */
export async function advance(
  tools: Tools,
  state: Rotating,
  confirming: Confirming,
  isNew: boolean,
): Promise<Rotated | null> {
  const { phase } = state.rotation;
  if (phase === 'returning') return goBack(tools, state, confirming);
  const planned = phase === 'announcing' ? await announce(tools, state, isNew) : await survey(tools, state);
  const switched = planned.state as Rotating;
  await makeSo(tools, planned);
  const witnesses = switched.rotation.witnesses.filter(({ publicKey }) => isWanted(publicKey, planned));
  if (witnesses.length === 0) return conclude(tools, switched, null);
  tools.progress('waiting for a peer to answer to the new key');
  const answered = await awaitAnswers(tools, planned, witnesses, confirming);
  if (answered !== null) return conclude(tools, switched, answered);
  return confirming.signal?.aborted ? null : giveUp(tools, switched, confirming);
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
function findWitnesses({ actual, desired }: Survey, now: number): readonly Witness[] {
  const wanted = new Set(desired.config.peers.map((peer) => peer.publicKey));
  return (actual.device?.peers ?? [])
    .flatMap(({ publicKey, latestHandshake }): Witness[] => {
      const isAlive = latestHandshake !== null && isFresh(latestHandshake, now);
      return isAlive && wanted.has(publicKey) ? [{ publicKey, latestHandshake }] : [];
    })
    .toSorted((one, other) => other.latestHandshake - one.latestHandshake)
    .slice(0, mostWitnesses);
}

function isWanted(publicKey: Witness['publicKey'], { desired }: Survey): boolean {
  return desired.config.peers.some((peer) => peer.publicKey === publicKey);
}

async function conclude(tools: Tools, state: Rotating, answered: Peer | null): Promise<Rotated> {
  const { rotation, keyPair, keySerial } = state;
  const { begunAt, proof } = rotation;
  const done = listedAs(state, keyPair, proof, { keySince: begunAt, keySerial: proof?.serial ?? keySerial });
  await tools.store.write(done);
  return { state: done, answered };
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

async function giveUp(tools: Tools, state: Rotating, confirming: Confirming): Promise<never> {
  const { rotation, identity, keySerial } = state;
  const after = rotation.proof?.serial ?? keySerial;
  const wayBack = identity && proveKey(identity, rotation.keyPair.publicKey, tools.now(), after);
  const returning: Rotating = { ...state, rotation: { ...rotation, phase: 'returning', wayBack } };
  await tools.store.write(returning);
  return goBack(tools, returning, confirming);
}

/**
 * Has the old key listed again, and only then makes it the host's: the others would not know it before. Where the control plane says
 * no to that, the new one stays.
 */
async function goBack(tools: Tools, state: Rotating, confirming: Confirming): Promise<never> {
  const { rotation, keySerial, interface: link } = state;
  const { keyPair, wayBack } = rotation;
  tools.progress(`nobody answered to the new key of ${link}; going back to the old one`, 'open');
  try {
    await registerKey(tools, state, keyPair.publicKey, wayBack);
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    if (error instanceof Unreachable) {
      // Where nothing was sent the new key is listed still, and an answer to it still counts.
      if (!error.delivered) await tools.store.write({ ...state, rotation: { ...rotation, phase: 'confirming' } });
      throw new RotationPending(link, `nobody answered to the new key, and ${error.message}`, error);
    }
    const listed = await readListedKey(tools, state);
    if (listed !== keyPair.publicKey) {
      await conclude(tools, state, null);
      throw error;
    }
  }
  const back = listedAs(state, keyPair, wayBack, { keySerial: wayBack?.serial ?? keySerial });
  const planned = await survey(tools, { ...back, rotation: { ...rotation, keyPair: state.keyPair } });
  await tools.store.write(back);
  await makeSo(tools, planned);
  await awaitAnswers(tools, planned, rotation.witnesses, { ...confirming, withinMs: recovering });
  throw new NotRotated(link, confirming.withinMs);
}
