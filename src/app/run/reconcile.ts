import { NotConfirmed, NotConverged } from '../../core/errors/index.ts';
import { findUnloaded, withoutRules } from '../reconcile/apply.ts';
import type { Evaluation } from '../reconcile/evaluate-network.ts';
import { findUnread, type Pass, passNetwork } from '../reconcile/pass.ts';
import type { StateUpdate } from '../reconcile/state-update.ts';
import type { PassOutcome, Tools } from '../tools.ts';
import type { DriftDamper } from './listeners/drift-damper.ts';
import type { NextPass } from './pass-scheduler.ts';

export interface ReconcileContext {
  readonly tools: Tools;
  readonly link: string;
  /** Milliseconds within which a change that could cut the host off is confirmed, or reverted. */
  readonly confirmMs: number;
  readonly damper: DriftDamper;
}

/**
 * Runs one pass. Returns its result (`pass` is null if it failed) and what follows; null if no
 * longer joined.
 */
export async function reconcile(
  { tools, link, confirmMs, damper }: ReconcileContext,
  update: StateUpdate,
  signal: AbortSignal,
): Promise<(NextPass & { readonly pass: Pass | null }) | null> {
  const start = tools.monotonic();
  let pause = 0;
  const mayRepair = (planned: Evaluation) => {
    pause = damper.pauseBefore(planned);
    return pause === 0;
  };
  try {
    const made = await passNetwork(tools, link, update, { withinMs: confirmMs, signal, mayRepair });
    if (made === null) return null;
    const unread = findUnread(made.evaluation);
    if (unread !== null) {
      const facts = { interface: link, changes: made.changes };
      if (made.changes.length > 0) tools.log.warn(facts, 'peers changed on a host that cannot be observed');
      throw unread;
    }
    const unloaded = made.evaluation && (await findUnloaded(tools, made.evaluation));
    const pass = { ...made, changes: withoutRules(made.changes, unloaded) };
    tools.meter.passed(link, outcomeOf(pass), tools.monotonic() - start);
    tools.meter.changed(link, pass.changes, pass.isDrift);
    return { pass, error: unloaded, requeueAfter: pause > 0 ? pause * 1000 : null };
  } catch (error) {
    tools.meter.passed(link, 'failed', tools.monotonic() - start);
    if (error instanceof NotConverged) await damper.noteUndone();
    if (error instanceof NotConfirmed) await damper.holdBack(error.message);
    return { pass: null, error, requeueAfter: null };
  }
}

function outcomeOf({ evaluation, changes, isDrift }: Pass): PassOutcome {
  if (changes.length > 0) return isDrift ? 'repaired' : 'changed';
  return evaluation !== null && evaluation.changes.length > 0 ? 'postponed' : 'steady';
}
