import { Interrupted, LeftDown } from '../../core/errors/index.ts';
import { toSentence } from '../../core/problems/problem.ts';
import { recordSteps } from '../../core/reconcile/record-receipt.ts';
import type { Joined } from '../../store/state/state.ts';
import { reportLoading } from '../lan/withdraw.ts';
import { findUnloaded, save, withoutRules } from '../reconcile/apply.ts';
import { cleanUp } from '../reconcile/cleanup.ts';
import { applyKnownMap } from '../reconcile/confirm.ts';
import { findDeletion, withoutDeletion } from '../reconcile/deleted-network.ts';
import { evaluateNetwork } from '../reconcile/evaluate-network.ts';
import { syncPorts } from '../reconcile/open-ports.ts';
import { defaultConfirmMs } from '../reconcile/pass.ts';
import type { Tools } from '../tools.ts';
import { explainChanges, forEachNetwork, type PassReport } from './pass-report.ts';
import { finishRotation } from './reconcile.ts';

/**
 * Brings networks up from the saved state. Requests go to a control plane only if a rotation is in
 * progress, or if packet rules do not load, or load again. A deleted network must be named. A
 * drained connector returns to service: the daemon, or the next `reconcile`, reports that.
 */
export async function bringUp(tools: Tools, network?: string): Promise<PassReport[]> {
  const rotating = new Set<string>();
  /** Networks whose packet rules do not load, or load again. */
  const changed: Joined[] = [];
  const reports = await tools.store.lock(() =>
    forEachNetwork(tools, network, async (stored) => {
      const deleted = findDeletion(stored);
      if (deleted !== null && network === undefined)
        throw new LeftDown(stored.interface, stored.membership.map.name, stored.service.url);
      if (deleted !== null) tools.warn(toSentence(deleted));
      // Otherwise the next statement of the deletion would be the second one.
      if (deleted !== null) await tools.store.amendNotes(stored.interface, { held: null });
      const state = withoutDeletion(stored);
      if (state.rotation) rotating.add(state.interface);
      // A peer that failed before may answer again, and without a daemon nothing would detect that.
      const failed = state.enabled ? state.failed : startingConnector(state);
      const enabled: Joined = { ...state, enabled: true, drained: false, failed };
      const planned = await evaluateNetwork(tools, enabled);
      const before = await findUnloaded(tools, planned);
      // A single write before the first step: the enabled network, and the receipt of the steps.
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

/** The hosts do not trust a connector yet whose tunnel was down. The daemon judges when they do. */
function startingConnector({ enrollment, membership }: Joined): Joined['failed'] {
  return enrollment.type === 'connector' ? [{ peer: membership.peer.id, back: true }] : [];
}

/** Restores a network's state before it was brought up: down, or drained. */
async function restoreDown(tools: Tools, before: Joined): Promise<void> {
  const { receipt } = (await tools.store.read(before.interface)) ?? before;
  const state = { ...before, receipt };
  await tools.store.write(state);
  if (!before.enabled) await cleanUp(tools, state);
}
