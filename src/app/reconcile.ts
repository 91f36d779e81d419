import type { Change } from '../core/change.ts';
import { CpnError, Interrupted } from '../core/errors.ts';
import { describeAllSkipped } from '../core/skipped-peers.ts';
import type { Joined } from '../store/state.ts';
import { accessOf, explainLocal } from './access.ts';
import { findUnloaded, save, withoutRules } from './apply.ts';
import { applyKnown } from './confirm.ts';
import { describeClaims } from './describe-claims.ts';
import { readFeatures, saveFeatures } from './described.ts';
import { withNews } from './news.ts';
import { passNetwork, usualConfirmation } from './pass.ts';
import { refresh } from './refresh.ts';
import { resolveNames } from './resolve.ts';
import { describeRotation } from './rotation/describe.ts';
import { resumeRotation } from './rotation/rotate.ts';
import { selectJoined } from './select.ts';
import { survey } from './survey.ts';
import { takeBack } from './take-back.ts';
import { tellSecret } from './tell-secret.ts';
import type { Tools } from './tools.ts';
import { tellLoading, tellWithdrawn, withdrawnBy } from './withdraw.ts';

/** What a pass changed, or would change, in one network. */
export interface PassReport {
  readonly interface: string;
  readonly changes: readonly Change[];
  /** What kept the newest map away; the pass went by the last known one. */
  readonly unsynced: CpnError | null;
  /** What stopped the pass of this network; the others went on. */
  readonly failure: CpnError | null;
}

/** What a pass over the networks would change, and why. Changes nothing. */
export async function planNetworks(tools: Tools, network?: string): Promise<PassReport[]> {
  return eachNetwork(tools, network, async (state) => {
    const { news, failure } = await refreshWhole(tools, state);
    const next = withNews(state, news);
    const pending = describeRotation(next);
    if (pending !== null) tools.warn(pending);
    return { changes: next.enabled ? (await survey(tools, next)).changes : [], unsynced: failure, failure: null };
  });
}

/**
 * One pass over the networks: reads the newest maps, and makes the host what it should be. A change that could cut it off is
 * taken back unless it is confirmed within `confirmMs`, 20 s unless told.
 */
export async function reconcileNetworks(
  tools: Tools,
  network?: string,
  confirmMs = usualConfirmation,
): Promise<PassReport[]> {
  return eachNetwork(tools, network, async (stored) => {
    const state = await withFeatures(tools, stored);
    const { news, notes, failure } = await refreshWhole(tools, state);
    const local = explainLocal(state);
    if (local !== null) tools.warn(local);
    await tools.store.amendNotes(state.interface, notes);
    const pass = await passNetwork(tools, state.interface, news, { withinMs: confirmMs });
    for (const skipped of describeAllSkipped(pass?.survey?.state.membership.map.skipped)) tools.warn(skipped);
    for (const claim of pass?.survey ? describeClaims(pass.survey.state) : []) tools.warn(claim);
    if (pass?.survey && failure === null) await tellService(tools, pass.survey.state);
    if (pass?.survey?.state.rotation) await endRotation(tools, state.interface, confirmMs);
    const unloaded = pass?.survey ? await findUnloaded(tools, pass.survey) : null;
    return { changes: withoutRules(pass?.changes ?? [], unloaded), unsynced: failure, failure: unloaded };
  });
}

/**
 * Brings networks up from what was last known, asking no control plane, but for one that is in the middle of a change of keys, or
 * whose packet rules do not load, or load again. A connector that was drained is to be in service again: a
 * pass of the daemon, or the next `reconcile`, tells the control plane so.
 */
export async function bringUp(tools: Tools, network?: string): Promise<PassReport[]> {
  const rotating = new Set<string>();
  /** Whose packet rules do not load, or load again. */
  const changed: Joined[] = [];
  const reports = await tools.store.lock(() =>
    eachNetwork(tools, network, async (state) => {
      if (state.rotation) rotating.add(state.interface);
      // Whoever failed before it was taken down may be well again, and nobody may be there to notice.
      const failed = state.enabled ? state.failed : [];
      const enabled: Joined = { ...state, enabled: true, drained: false, failed };
      const planned = await survey(tools, enabled);
      const before = await findUnloaded(tools, planned);
      if (!state.enabled || state.drained) await tools.store.write(enabled);
      const applied = await tools.deferSignals(async (signal) => {
        try {
          return await applyKnown(tools, planned, enabled, { withinMs: usualConfirmation, signal });
        } catch (error) {
          if (error instanceof Interrupted) await goBackDown(tools, state);
          throw error;
        }
      });
      await save(tools, applied, enabled, planned);
      if (state.drained) {
        tools.warn(
          `${state.interface} is in service again once the daemon, or "cpn reconcile", told the control plane`,
        );
      }
      const failure = await findUnloaded(tools, planned);
      if (failure !== null || before !== null) changed.push(enabled);
      return { changes: withoutRules(planned.changes, failure), unsynced: null, failure };
    }),
  );
  for (const state of changed) await tellLoading(tools, state);
  for (const { interface: link, failure } of reports) {
    if (failure === null && rotating.has(link)) await endRotation(tools, link, usualConfirmation);
  }
  return reports;
}

/** Makes a network again what it was before it was to be up: down, or drained. */
async function goBackDown(tools: Tools, before: Joined): Promise<void> {
  const { receipt } = (await tools.store.read(before.interface)) ?? before;
  const state = { ...before, receipt };
  await tools.store.write(state);
  if (!before.enabled) await takeBack(tools, state);
}

/** A change of keys that was begun before is ended, as far as it can be now; that it cannot does not make the pass a failure. */
async function endRotation(tools: Tools, link: string, withinMs: number): Promise<void> {
  try {
    await resumeRotation(tools, link, { withinMs });
  } catch (error) {
    if (!(error instanceof CpnError)) throw error;
    tools.warn(error.message);
  }
}

/** What is out of service here, and whether there is a network secret, may be news to the control plane. */
async function tellService(tools: Tools, state: Joined): Promise<void> {
  const notes = await tools.store.readNotes(state.interface);
  const told = [await tellWithdrawn(tools, state, withdrawnBy(state, notes)), await tellSecret(tools, state)];
  for (const error of told) if (error !== null && error !== 'unknown') tools.warn(error.message);
}

/** A pass of its own has nobody who follows the names, as a daemon does. */
async function refreshWhole(tools: Tools, state: Joined) {
  const refreshed = await refresh(tools, state);
  const resolved = await resolveNames(tools, withNews(state, refreshed.news));
  return { ...refreshed, news: { ...refreshed.news, resolved } };
}

/** The description of a service that is asked for its map is read once where it never was; then the daemon, or a join, reads it. */
async function withFeatures(tools: Tools, state: Joined): Promise<Joined> {
  if (state.features !== null || accessOf(state) === null) return state;
  const features = await readFeatures(tools, state);
  await saveFeatures(tools, state.interface, features);
  return { ...state, features };
}

/** One network's failure is its own; a signal, and what nobody foresaw, stop everything. */
async function eachNetwork(
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
  return { interface: link, changes: [], unsynced: null, failure };
}
