import type { Caller } from '../../domain/caller.ts';
import { Conflict } from '../../errors.ts';
import { lockOrganizationOf, readNetwork } from '../../store/networks.ts';
import { findNextReturn, listUnconfirmed, readRules, saveConfirmation } from '../../store/rules.ts';
import { transact } from '../../store/transact.ts';
import { record, system } from '../audit.ts';
import type { Context } from '../context.ts';
import { lockNetwork } from '../networks.ts';
import { requireAuthor } from '../require-author.ts';
import { withRevision } from '../with-revision.ts';
import { readRuled, type ShownRules, showRules } from './ruled-network.ts';
import { changedMeanwhile, type IsExpected, recordConfirmation, saveNext, summarize } from './set-rules.ts';

/** Keeps rules that wait for a confirmation. Confirmed rules stay as they are. */
export async function confirmRules(
  context: Context,
  caller: Caller,
  id: number,
  isExpected: IsExpected,
): Promise<ShownRules> {
  return transact(context.db, async (transaction) => {
    const network = await lockNetwork(transaction, caller, id);
    const author = await requireAuthor(context, transaction, caller);
    const ruled = await readRuled(transaction, network);
    const { change, earlier, restoredAt } = ruled.stored;
    if (!isExpected(change)) throw changedMeanwhile();
    if (restoredAt !== null)
      throw new Conflict(`the rules were not confirmed in time: the earlier ones returned at ${restoredAt}`);
    if (earlier !== null) {
      await saveConfirmation(transaction, id, null);
      await recordConfirmation(transaction, author, network);
    }
    return showRules({ ...ruled, stored: { ...ruled.stored, confirmUntil: null } });
  });
}

/** Restores rules whose successors were not confirmed. Returns when the next ones are due. */
export async function restoreRules(context: Context): Promise<string | null> {
  const now = context.now().toISOString();
  for (const network of await listUnconfirmed(context.db, now)) await restoreIn(context, network, now);
  return findNextReturn(context.db);
}

/** Of several processes on one database, only the first to lock the network finds them due. */
async function restoreIn(context: Context, id: number, now: string): Promise<void> {
  await withRevision(context, async (transaction, revise, append) => {
    const organizationId = await lockOrganizationOf(transaction, id);
    const stored = await readRules(transaction, id);
    const { earlier, confirmUntil } = stored;
    if (organizationId === undefined || earlier === null || confirmUntil === null || confirmUntil > now) return;
    await revise(id, {});
    const restored = { ...earlier, earlier: null, confirmUntil: null, restoredAt: now };
    const details = summarize(await saveNext(context, transaction, id, { stored }, restored));
    const { name } = await readNetwork(transaction, id);
    const author = { organizationId, actor: system, address: null, readTime: context.readTime };
    await record(transaction, author, { action: 'rules.restore', target: { kind: 'network', id, name }, details });
    append(id, { type: 'rules.restored', details });
  });
}
