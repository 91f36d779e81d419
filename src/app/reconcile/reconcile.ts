import { CpnError, expectCpnError, Interrupted, LeftDown } from '../../core/errors/index.ts';
import { describeAllSkipped } from '../../core/map/skipped-peers.ts';
import type { Change } from '../../core/reconcile/change.ts';
import { recordSteps } from '../../core/reconcile/record-receipt.ts';
import { diffConfig, type SectionDiff } from '../../core/wg-quick/diff.ts';
import type { Joined } from '../../store/state/state.ts';
import { accessOf, explainNoAccess } from '../access.ts';
import { reportLoading, reportWithdrawn, withdrawnBy } from '../drain/withdraw.ts';
import { cleanUp } from '../leave/cleanup.ts';
import { finishLeaving } from '../leave/former-networks.ts';
import { describeRotation } from '../rotation/begin.ts';
import { resumeRotation } from '../rotation/rotate.ts';
import { isJoined, selectJoined } from '../select.ts';
import { readFeatures, saveFeatures } from '../service-features.ts';
import { describePinMismatches } from '../status/describe-pin-mismatches.ts';
import type { Tools } from '../tools.ts';
import { findUnloaded, save, withoutRules } from './apply.ts';
import { checkLanRoutes } from './check-lan-routes.ts';
import { applyKnownMap } from './confirm.ts';
import { describeDeletion, withoutDeletion } from './deleted-network.ts';
import { type Evaluation, evaluateNetwork } from './evaluate-network.ts';
import { syncPorts } from './open-ports.ts';
import { defaultConfirmMs, findUnread, passNetwork } from './pass.ts';
import { refresh } from './refresh.ts';
import { reportSecret } from './report-secret.ts';
import { resolveNames } from './resolve-names.ts';
import { applyUpdate } from './state-update.ts';

/** What a pass changed, or would change, in one network. */
export interface PassReport {
  readonly interface: string;
  readonly changes: readonly Change[];
  /** Names of the peers of the map before and after, by public key: for people, and not in JSON. */
  readonly names: ReadonlyMap<string, string>;
  /** How the wg-quick file differed, without secrets; empty where there was none. For people too. */
  readonly fileDiff: readonly SectionDiff[];
  /** What kept the newest map away; the pass went by the last known one. */
  readonly unsynced: CpnError | null;
  /** What stopped the pass of this network; the others went on. */
  readonly failure: CpnError | null;
}

/** What makes the changes of a pass readable for people. */
export function explainChanges(
  { membership }: Joined,
  planned: Evaluation | null,
): Pick<PassReport, 'names' | 'fileDiff'> {
  const peers = [...membership.map.peers, ...(planned?.state.membership.map.peers ?? [])];
  return {
    names: new Map(peers.map(({ publicKey, name }) => [publicKey, name])),
    fileDiff:
      planned?.savedText && planned.savedText !== planned.config ? diffConfig(planned.savedText, planned.config) : [],
  };
}

/** What a pass over the networks would change, and why. Changes nothing. */
export async function planNetworks(tools: Tools, network?: string): Promise<PassReport[]> {
  return forEachNetwork(tools, network, async (state) => {
    const { update, failure } = await refreshWithNames(tools, state);
    const next = applyUpdate(state, update);
    const pending = describeRotation(next);
    if (pending !== null) tools.warn(pending);
    const deleted = describeDeletion(next);
    if (deleted !== null) tools.warn(deleted);
    const planned = next.enabled ? await evaluateNetwork(tools, next, { acceptsUnread: true }) : null;
    const changes = planned?.changes ?? [];
    const unread = findUnread(planned);
    return { ...explainChanges(state, planned), changes, unsynced: failure, failure: unread };
  });
}

/**
 * One pass over the networks: reads the newest maps, and makes the host what it should be. A change that could cut it off is
 * taken back unless it is confirmed within `confirmMs`, 20 s by default.
 */
export async function reconcileNetworks(
  tools: Tools,
  network?: string,
  confirmMs = defaultConfirmMs,
): Promise<PassReport[]> {
  const reports = await forEachNetwork(tools, network, async (stored) => {
    const state = await withFeatures(tools, stored);
    const { update, notes, failure } = await refreshWithNames(tools, state);
    const local = explainNoAccess(state);
    if (local !== null) tools.warn(local);
    await tools.store.amendNotes(state.interface, notes);
    const pass = await passNetwork(tools, state.interface, update, { withinMs: confirmMs });
    const settled = await tools.store.read(state.interface);
    const deleted = settled !== null && isJoined(settled) ? describeDeletion(settled) : null;
    if (deleted !== null) tools.warn(deleted);
    // This request confirms the deletion.
    if (update.deletedAt !== undefined && settled !== null && isJoined(settled)) await refresh(tools, settled);
    for (const skipped of describeAllSkipped(pass?.evaluation?.state.membership.map.skipped)) tools.warn(skipped);
    for (const warning of pass?.evaluation ? describePinMismatches(pass.evaluation.state) : []) tools.warn(warning);
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

/** Reads the map with a change that this host reported, as there may be no daemon that does. Returns what that changed here. */
export async function readReported(tools: Tools, link: string): Promise<PassReport['changes']> {
  const [pass] = await reconcileNetworks(tools, link);
  const error = pass?.failure ?? pass?.unsynced;
  if (error) tools.warn(error.message);
  return pass?.changes ?? [];
}

/**
 * Brings networks up from what was last known, and one that was deleted only where it is named, asking no control plane, but for one that is in the middle of a change of keys, or
 * whose packet rules do not load, or load again. A connector that was drained is to be in service again: a
 * pass of the daemon, or the next `reconcile`, tells the control plane so.
 */
export async function bringUp(tools: Tools, network?: string): Promise<PassReport[]> {
  const rotating = new Set<string>();
  /** Whose packet rules do not load, or load again. */
  const changed: Joined[] = [];
  const reports = await tools.store.lock(() =>
    forEachNetwork(tools, network, async (stored) => {
      const deleted = describeDeletion(stored);
      if (deleted !== null && network === undefined)
        throw new LeftDown(stored.interface, stored.membership.map.name, stored.service.url);
      if (deleted !== null) tools.warn(deleted);
      // Without that the next statement of the deletion would be the second one.
      if (deleted !== null) await tools.store.amendNotes(stored.interface, { held: null });
      const state = withoutDeletion(stored);
      if (state.rotation) rotating.add(state.interface);
      // A peer that failed before may answer again, and without a daemon nothing would notice.
      const failed = state.enabled ? state.failed : [];
      const enabled: Joined = { ...state, enabled: true, drained: false, failed };
      const planned = await evaluateNetwork(tools, enabled);
      const before = await findUnloaded(tools, planned);
      // One write before the first step: that the network is to be up, and what is about to be made.
      const receipt = recordSteps(state.receipt, planned.steps, planned.actual);
      const known = receipt === state.receipt ? enabled : { ...enabled, receipt };
      if (!state.enabled || state.drained || known !== enabled) await tools.store.write(known);
      const applied = await tools.deferSignals(async (signal) => {
        try {
          return await applyKnownMap(tools, planned, known, { withinMs: defaultConfirmMs, signal });
        } catch (error) {
          if (error instanceof Interrupted) await restoreDown(tools, state);
          throw error;
        }
      });
      await save(tools, applied, known, planned);
      const opened = state.enabled ? [] : (await syncPorts(tools, applied, planned.actual)).changes;
      if (state.drained) {
        tools.warn(
          `${state.interface} is in service again once the daemon, or "cpn reconcile", reports it to the control plane`,
        );
      }
      const failure = await findUnloaded(tools, planned);
      if (failure !== null || before !== null) changed.push(enabled);
      const changes = [...withoutRules(planned.changes, failure), ...opened];
      return { ...explainChanges(state, planned), changes, unsynced: null, failure };
    }),
  );
  for (const state of changed) await reportLoading(tools, state);
  for (const { interface: link, failure } of reports) {
    if (failure === null && rotating.has(link)) await finishRotation(tools, link, defaultConfirmMs);
  }
  return reports;
}

/** Makes a network again what it was before it was to be up: down, or drained. */
async function restoreDown(tools: Tools, before: Joined): Promise<void> {
  const { receipt } = (await tools.store.read(before.interface)) ?? before;
  const state = { ...before, receipt };
  await tools.store.write(state);
  if (!before.enabled) await cleanUp(tools, state);
}

/** A change of keys that was begun before is ended, as far as it can be now; that it cannot does not make the pass a failure. */
async function finishRotation(tools: Tools, link: string, withinMs: number): Promise<void> {
  try {
    await resumeRotation(tools, link, { withinMs });
  } catch (error) {
    tools.warn(expectCpnError(error).message);
  }
}

/** What is out of service here, and whether there is a network secret, may be news to the control plane. */
async function reportState(tools: Tools, evaluation: Evaluation): Promise<void> {
  const { state } = evaluation;
  if (state.enrollment.type === 'connector') await checkLanRoutes(tools, evaluation);
  const notes = await tools.store.readNotes(state.interface);
  const results = [await reportWithdrawn(tools, state, withdrawnBy(state, notes)), await reportSecret(tools, state)];
  for (const error of results) if (error !== null && error !== 'unknown') tools.warn(error.message);
}

/** A command resolves the names itself; the daemon has a name follower. */
async function refreshWithNames(tools: Tools, state: Joined) {
  const refreshed = await refresh(tools, state);
  const resolved = await resolveNames(tools, applyUpdate(state, refreshed.update));
  return { ...refreshed, update: { ...refreshed.update, resolved } };
}

/** The description of a service that is asked for its map is read once where it never was; then the daemon, or a join, reads it. */
async function withFeatures(tools: Tools, state: Joined): Promise<Joined> {
  if (state.features !== null || accessOf(state) === null) return state;
  const features = await readFeatures(tools, state);
  await saveFeatures(tools, state.interface, features);
  return { ...state, features };
}

/** One network's failure is its own; a signal and an unexpected error stop everything. */
async function forEachNetwork(
  tools: Tools,
  network: string | undefined,
  work: (state: Joined) => Promise<Omit<PassReport, 'interface'>>,
): Promise<PassReport[]> {
  const { states, unreadable } = await selectJoined(tools, network);
  const reports: PassReport[] = unreadable.map(({ interface: link, error }) => failed(link, error));
  for (const state of states) {
    try {
      reports.push({ interface: state.interface, ...(await work(state)) });
    } catch (error) {
      if (!(error instanceof CpnError) || error instanceof Interrupted) throw error;
      reports.push(failed(state.interface, error));
    }
  }
  return reports;
}

function failed(link: string, failure: CpnError): PassReport {
  return { interface: link, changes: [], names: new Map(), fileDiff: [], unsynced: null, failure };
}
