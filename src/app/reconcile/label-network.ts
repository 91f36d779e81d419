import { comparePeerIds, type Id } from '../../core/map/model.ts';
import { chooseLabels } from '../../core/names/hosts-label.ts';
import type { Joined } from '../../store/state/state.ts';
import { isJoined } from '../select.ts';
import type { Tools } from '../tools.ts';

/**
 * The label of a network in this host's hosts file: its name, made to fit. Of two that are alike the network with the lower id keeps
 * it, or where two services gave the same id, the one that was joined earlier.
 */
export async function labelNetwork(tools: Tools, state: Joined): Promise<string> {
  const { states } = await tools.store.list();
  const others = states.filter(isJoined).filter((other) => other.options.hosts && other.interface !== state.interface);
  const all = [state, ...others].toSorted(
    (a, b) => comparePeerIds(idOf(a), idOf(b)) || (a.createdAt < b.createdAt ? -1 : 1),
  );
  const labels = chooseLabels(
    all.map((each) => ({ id: idOf(each), name: each.membership.map.name })),
    'network',
  );
  return labels[all.indexOf(state)] as string;
}

/** One without an id comes first: those of our own control plane begin at 1. */
function idOf({ membership }: Joined): Id {
  return membership.map.id ?? 0;
}
