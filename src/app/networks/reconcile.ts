import { expectCpnError } from '../../core/errors/index.ts';
import { toSentence } from '../../core/problems/problem.ts';
import type { Joined } from '../../store/state/state.ts';
import { accessOf, findNoAccess } from '../access.ts';
import { checkLanRoutes } from '../lan/lan-routes.ts';
import { reportWithdrawn, withdrawnBy } from '../lan/withdraw.ts';
import { findPinProblems, findSkippedPeers } from '../problems/find-problems.ts';
import { findRotation } from '../problems/find-state-problems.ts';
import { findUnloaded, withoutRules } from '../reconcile/apply.ts';
import { findDown } from '../reconcile/deleted-network.ts';
import { type Evaluation, evaluateNetwork } from '../reconcile/evaluate-network.ts';
import { resolveNames } from '../reconcile/names/resolve-names.ts';
import { defaultConfirmMs, findUnread, passNetwork } from '../reconcile/pass.ts';
import { refresh } from '../reconcile/refresh.ts';
import { applyUpdate } from '../reconcile/state-update.ts';
import { reportSecret } from '../report-secret.ts';
import { resumeRotation } from '../rotation/rotate.ts';
import { isJoined } from '../select.ts';
import { readFeatures, saveFeatures } from '../service-features.ts';
import type { Tools } from '../tools.ts';
import { finishLeaving } from './former-networks.ts';
import { explainChanges, forEachNetwork, type PassReport } from './pass-report.ts';

/**
 * Runs one pass over the networks: requests the newest maps, and reconciles the host. A change that
 * could cut it off is reverted unless it is confirmed within `confirmMs`, 20 s by default.
 */
export async function reconcileNetworks(
  tools: Tools,
  network?: string,
  confirmMs = defaultConfirmMs,
): Promise<PassReport[]> {
  const reports = await forEachNetwork(tools, network, async (stored) => {
    const state = await withFeatures(tools, stored);
    const { update, notes, failure } = await refreshWithNames(tools, state);
    const local = findNoAccess(state);
    if (local !== null) tools.warn(toSentence(local));
    await tools.store.amendNotes(state.interface, notes);
    const pass = await passNetwork(tools, state.interface, update, { withinMs: confirmMs });
    const settled = await tools.store.read(state.interface);
    const down = settled !== null && isJoined(settled) ? findDown(settled) : null;
    if (down !== null) tools.warn(toSentence(down));
    // This request confirms the deletion.
    if (update.deletedAt !== undefined && settled !== null && isJoined(settled)) await refresh(tools, settled);
    const passed = pass?.evaluation?.state;
    const found = passed ? [...findSkippedPeers(passed), ...findPinProblems(passed)] : [];
    for (const each of found) tools.warn(toSentence(each));
    const unread = findUnread(pass?.evaluation);
    if (pass && unread)
      return { ...explainChanges(state, pass.evaluation), changes: pass.changes, unsynced: failure, failure: unread };
    if (pass?.evaluation && failure === null) await reportState(tools, pass.evaluation);
    if (pass?.evaluation?.state.rotation) await finishRotation(tools, state.interface, confirmMs);
    const unloaded = pass?.evaluation ? await findUnloaded(tools, pass.evaluation) : null;
    const changes = withoutRules(pass?.changes ?? [], unloaded);
    return { ...explainChanges(state, pass?.evaluation ?? null), changes, unsynced: failure, failure: unloaded };
  });
  await finishLeaving(tools);
  return reports;
}

/** Returns what {@link reconcileNetworks} would change on the host, without changing it. */
export async function planNetworks(tools: Tools, network?: string): Promise<PassReport[]> {
  return forEachNetwork(tools, network, async (state) => {
    const { update, failure } = await refreshWithNames(tools, state);
    const next = applyUpdate(state, update);
    for (const found of [findRotation(next), findDown(next)]) if (found !== null) tools.warn(toSentence(found));
    const planned = next.enabled ? await evaluateNetwork(tools, next, { acceptsUnread: true }) : null;
    const changes = planned?.changes ?? [];
    const unread = findUnread(planned);
    return { ...explainChanges(state, planned), changes, unsynced: failure, failure: unread };
  });
}

/** Requests the map after a change that this host reported: a daemon may not be running. */
export async function readReported(tools: Tools, link: string): Promise<PassReport['changes']> {
  const [pass] = await reconcileNetworks(tools, link);
  const error = pass?.failure ?? pass?.unsynced;
  if (error) tools.warn(error.message);
  return pass?.changes ?? [];
}

/** Reports routes out of service and the network secret, if the control plane lacks them. */
async function reportState(tools: Tools, evaluation: Evaluation): Promise<void> {
  const { state } = evaluation;
  if (state.enrollment.type === 'connector') await checkLanRoutes(tools, evaluation);
  const notes = await tools.store.readNotes(state.interface);
  const results = [await reportWithdrawn(tools, state, withdrawnBy(state, notes)), await reportSecret(tools, state)];
  for (const error of results) if (error !== null && error !== 'unknown') tools.warn(error.message);
}

/** Reads the service description if it was never read. The daemon, or a join, reads it later. */
async function withFeatures(tools: Pick<Tools, 'store' | 'describe' | 'log'>, state: Joined): Promise<Joined> {
  if (state.features !== null || accessOf(state) === null) return state;
  const features = await readFeatures(tools, state);
  await saveFeatures(tools, state.interface, features);
  return { ...state, features };
}

/** Completes a rotation as far as possible now. A failure is a warning, not a failed pass. */
export async function finishRotation(tools: Tools, link: string, withinMs: number): Promise<void> {
  try {
    await resumeRotation(tools, link, { withinMs });
  } catch (error) {
    tools.warn(expectCpnError(error).message);
  }
}

/** A command resolves the names itself; the daemon has a name follower. */
export async function refreshWithNames(tools: Tools, state: Joined) {
  const refreshed = await refresh(tools, state);
  const resolved = await resolveNames(tools, applyUpdate(state, refreshed.update));
  return { ...refreshed, update: { ...refreshed.update, resolved } };
}
