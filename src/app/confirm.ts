import type { Change } from '../core/change.ts';
import { restore } from '../core/desired.ts';
import { CpnError, Interrupted, NotConfirmed, Unreachable } from '../core/errors.ts';
import { findMeshLoss, presentTunnel } from '../core/mesh-loss.ts';
import { findMoved } from '../core/moved-peers.ts';
import { identifyMap } from '../core/newer-map.ts';
import { plan } from '../core/plan.ts';
import type { Joined } from '../store/state.ts';
import { accessOf } from './access.ts';
import { apply } from './apply.ts';
import { type ConfirmingPeer, findConfirmingPeers, isAnyAnswering } from './confirming-peers.ts';
import { awaitAnswers, findAsked } from './rotation/await-answers.ts';
import { type Survey, survey } from './survey.ts';
import { secondsNow, type Tools } from './tools.ts';

/** How a change that could cut the host off is confirmed. */
export interface Confirming {
  /** Milliseconds within which the control plane, or a peer that answered before, must answer again. */
  readonly withinMs: number;
  /** Ends the wait at once; what is not confirmed by then is taken back. */
  readonly signal?: AbortSignal;
  /** Whether the service sent the newest map twice: then a peer that it no longer lists is removed, and not lost. */
  readonly isSaidTwice?: boolean;
}

/** Milliseconds for one request to the control plane, and between two rounds. */
const askWithin = 5_000;
const pause = 250;
/** Milliseconds in which WireGuard in user space may still send as before: it hears of a change of routes a moment later. */
const settling = 1_000;

/** True when changes may take away the way to this host: anything but names and new peers, whose packets go nowhere else yet. */
export function areRisky(changes: readonly Change[]): boolean {
  return !changes.every(
    ({ action, kind }) => kind === 'file' || kind === 'hosts' || (kind === 'peer' && action === 'add'),
  );
}

/** True when somebody answers before a change, so that silence after it tells something. */
export async function isAnswered(tools: Tools, planned: Survey): Promise<boolean> {
  if (findConfirmingPeers(planned, secondsNow(tools)).length > 0) return true;
  return isApiHeard(tools, planned.state, { deadlineMs: askWithin, signal: undefined });
}

/** What of the network itself a survey takes away, in words; null where it takes away nothing of it. */
function findLoss(
  { saved, desired, actual, listed, state }: Survey,
  known: Joined,
  isBelieved: boolean,
): string | null {
  const before = saved ?? presentTunnel(actual, desired.config.address);
  const newest = state.membership.map.peers;
  // A map without this host itself is applied only once the service sent it twice.
  const listing = {
    known: known.membership.map.peers,
    newest: listed ? newest : [],
    isBelieved: isBelieved || !listed,
  };
  return before && findMeshLoss(before, desired.config, listing);
}

/**
 * Applies a survey of the known map, or of what a person requested. Where it takes away the network itself, whatever the cause, it is
 * confirmed as {@link applyTentatively} describes.
 *
 * @throws NotConfirmed when it was taken back, and whatever {@link apply} throws
 */
export async function applyKnown(
  tools: Tools,
  planned: Survey,
  known: Joined,
  confirming: Confirming,
): Promise<Joined> {
  const loss = findLoss(planned, known, true);
  if (loss === null) return apply(tools, planned, known);
  const facts = { interface: known.interface, loss };
  if (!(await isAnswered(tools, planned))) {
    // Without an answer before the change, silence after it proves nothing.
    tools.log.warn(facts, 'a change takes away the network, and is not confirmed');
    return apply(tools, planned, known);
  }
  const { state, isKept } = await applyTentatively(tools, planned, known, confirming);
  if (isKept) return state;
  const { revision } = known.membership.map;
  throw new NotConfirmed(known.interface, { revision, loss, again: 'later', withinMs: confirming.withinMs });
}

/**
 * Applies a survey that goes by a map not tried before, as {@link applyTentatively} does, and remembers what was refused.
 *
 * @throws NotConfirmed when it was taken back, and whatever {@link apply} throws, after it was taken back
 */
export async function applyConfirmed(
  tools: Tools,
  planned: Survey,
  known: Joined,
  confirming: Confirming,
): Promise<Joined> {
  const { map } = planned.state.membership;
  const { state, isKept } = await applyTentatively(tools, planned, known, confirming);
  if (isKept) return state;
  const loss = findLoss(planned, known, confirming.isSaidTwice === true);
  // Peers that the service took out of the network are to go, if it means it: it is asked again.
  const again = loss !== null && findLoss(planned, known, true) === null ? 'repeated' : 'changed';
  // What was only interrupted is tried again by the next process.
  if (!confirming.signal?.aborted) {
    if (again === 'repeated') await tools.store.amendNotes(known.interface, { held: { since: tools.uptime() } });
    else await tools.store.write({ ...state, refused: identifyMap(map) });
  }
  const { withinMs } = confirming;
  throw new NotConfirmed(known.interface, { revision: map.revision, loss, again, withinMs });
}

/**
 * Applies a survey, and keeps it only if the control plane, or a peer that answered before, still answers; else makes the host again
 * what `known` says. A change that takes away the network itself is confirmed by retained peers with a fresh handshake alone: the
 * control plane is reached outside the tunnel, and would confirm the loss of all of it. It counts only where there is no such peer.
 *
 * @returns the state that the host is in now
 * @throws Interrupted when it was taken back after a signal
 * @throws whatever {@link apply} throws, after it was taken back
 */
export function applyTentatively(tools: Tools, planned: Survey, known: Joined, confirming: Confirming): Promise<Tried> {
  return tools.deferSignals(async (interrupted) => {
    const signal = AbortSignal.any([interrupted, ...(confirming.signal ? [confirming.signal] : [])]);
    const tried = await tryOut(tools, planned, known, { ...confirming, signal });
    if (!tried.isKept) throwIfInterrupted(signal);
    return tried;
  });
}

/** Throws where a signal came, and a change is to be taken back. */
export function throwIfInterrupted(signal: AbortSignal | undefined): void {
  if (isInterrupted(signal)) throw signal?.reason;
}

export function isInterrupted(signal: AbortSignal | undefined): boolean {
  return signal?.reason instanceof Interrupted;
}

/** What became of a change that had to be confirmed. */
interface Tried {
  readonly state: Joined;
  readonly isKept: boolean;
}

async function tryOut(tools: Tools, planned: Survey, known: Joined, confirming: Confirming): Promise<Tried> {
  const peers = findConfirmingPeers(planned, secondsNow(tools));
  const loss = findLoss(planned, known, confirming.isSaidTwice === true);
  let applied: Joined;
  try {
    applied = await apply(tools, planned, known);
  } catch (error) {
    await goBack(tools, planned, known).catch((failure: Error) => {
      const facts = { interface: known.interface, error: failure.message };
      tools.log.warn(facts, 'a change failed, and could not be taken back');
    });
    throw error;
  }
  const isKept =
    loss === null || peers.length === 0
      ? await isConfirmed(tools, planned.state, { peers, asksApi: true }, confirming)
      : await isLossConfirmed(tools, planned, peers, confirming);
  if (isKept) return { state: applied, isKept };
  const state = await goBack(tools, planned, known);
  // A forced handshake that failed ended their sessions; without a new one they could not confirm the next change.
  if (loss !== null) for (const { address } of peers) await tools.host.nudge(address);
  return { state, isKept };
}

/**
 * Makes the host what it was before; the receipt on disk may have grown meanwhile, and stays. Where drift is the cause, the known map
 * leads to the same change again: then the host is restored from the wg-quick file.
 */
async function goBack(tools: Tools, { saved, desired: tried }: Survey, known: Joined): Promise<Joined> {
  const { receipt } = (await tools.store.read(known.interface)) ?? known;
  const before: Joined = { ...known, receipt };
  const planned = await survey(tools, before, { applied: tried.config });
  if (saved === null || findLoss(planned, before, true) === null) return apply(tools, planned, before);
  const desired = restore(planned.desired, saved);
  const moved = findMoved(desired.config, tried.config, { map: before.membership.map, resolved: before.resolved });
  return apply(
    tools,
    { ...planned, desired, moved, steps: plan(desired, planned.actual, secondsNow(tools), moved) },
    before,
  );
}

/** A peer behind a firewall does not answer a TCP connection. It completes a handshake, which WireGuard is then made to begin. */
async function isLossConfirmed(
  tools: Tools,
  planned: Survey,
  peers: readonly ConfirmingPeer[],
  { withinMs, signal }: Confirming,
): Promise<boolean> {
  const half = { withinMs: withinMs / 2, ...(signal && { signal }) };
  if (await isConfirmed(tools, planned.state, { peers, asksApi: false }, half)) return true;
  const reached = peers.flatMap(({ publicKey, latestHandshake, isReached }) =>
    isReached && latestHandshake !== null ? [{ publicKey, latestHandshake }] : [],
  );
  const { state, desired } = planned;
  const asked = findAsked(state.membership.map, desired.config.peers, reached);
  // The lock is held already.
  const asking = {
    link: state.interface,
    find: async () => asked,
    exclusively: (work: () => Promise<void>) => work(),
  };
  return (await awaitAnswers(tools, asking, half)) !== null;
}

async function isConfirmed(
  tools: Tools,
  state: Joined,
  { peers, asksApi }: { readonly peers: readonly ConfirmingPeer[]; readonly asksApi: boolean },
  { withinMs, signal }: Confirming,
): Promise<boolean> {
  if (accessOf(state) === null && peers.length === 0) return true;
  const deadline = tools.monotonic() + withinMs / 1000;
  await tools.sleep(Math.min(settling, withinMs / 4), signal);
  while (!signal?.aborted) {
    if (asksApi && (await isApiHeard(tools, state, { deadlineMs: Math.min(askWithin, withinMs), signal }))) return true;
    // The control plane may have gone for reasons of its own: then those speak who can.
    const reached = peers.filter((peer) => peer.isReached);
    if (!signal?.aborted && (await isAnyAnswering(tools, state, reached))) return true;
    await tools.sleep(pause, signal);
    if (tools.monotonic() >= deadline) break;
  }
  return false;
}

/** Whatever answers there proves that the way is open, be it with a refusal. */
async function isApiHeard(
  tools: Tools,
  state: Joined,
  { deadlineMs, signal }: { deadlineMs: number; signal: AbortSignal | undefined },
): Promise<boolean> {
  const access = accessOf(state);
  if (access === null) return false;
  try {
    const api = await tools.connect(state, { deadlineMs });
    await api.readMap(access.network, access.token, state.membership.map, signal && { seconds: 0, signal });
    return true;
  } catch (error) {
    if (signal?.aborted) return false;
    if (!(error instanceof CpnError)) throw error;
    return error instanceof Unreachable ? error.heard : true;
  }
}
