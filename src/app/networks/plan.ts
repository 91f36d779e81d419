import { toSentence } from '../../core/problems/problem.ts';
import { findRotation } from '../problems/find-state-problems.ts';
import { findDeletion } from '../reconcile/deleted-network.ts';
import { evaluateNetwork } from '../reconcile/evaluate-network.ts';
import { findUnread } from '../reconcile/pass.ts';
import { applyUpdate } from '../reconcile/state-update.ts';
import type { Tools } from '../tools.ts';
import { explainChanges, forEachNetwork, type PassReport } from './pass-report.ts';
import { refreshWithNames } from './reconcile.ts';

export async function planNetworks(tools: Tools, network?: string): Promise<PassReport[]> {
  return forEachNetwork(tools, network, async (state) => {
    const { update, failure } = await refreshWithNames(tools, state);
    const next = applyUpdate(state, update);
    for (const found of [findRotation(next), findDeletion(next)]) if (found !== null) tools.warn(toSentence(found));
    const planned = next.enabled ? await evaluateNetwork(tools, next, { acceptsUnread: true }) : null;
    const changes = planned?.changes ?? [];
    const unread = findUnread(planned);
    return { ...explainChanges(state, planned), changes, unsynced: failure, failure: unread };
  });
}
