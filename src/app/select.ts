import { NotJoined, quote } from '../core/errors.ts';
import type { Joined, State } from '../store/state.ts';
import type { Store } from '../store/store.ts';
import type { Tools } from './tools.ts';

/**
 * The networks of this host that `network` names: an interface, a network's id or its name; all of them when nothing is
 * named.
 *
 * @throws NotJoined when something is named that this host has not joined
 */
export async function selectStates(store: Store, network: string | undefined): Promise<State[]> {
  const states = await store.list();
  if (network === undefined) return states;
  const chosen = states.filter((state) => namesOf(state).includes(network));
  if (chosen.length > 0) return chosen;
  const joined = states.map((state) => state.interface).join(', ') || 'none';
  throw new NotJoined(`this host has not joined a network ${quote(network)}; joined: ${joined}`);
}

/** Like {@link selectStates}, without those whose join was never finished, which a person is told. */
export async function selectJoined(tools: Tools, network: string | undefined): Promise<Joined[]> {
  const states = await selectStates(tools.store, network);
  for (const { interface: link } of states.filter((state) => !isJoined(state))) {
    const problem = `the join of ${link} was not finished; run "cpn join" with the same key again, or "cpn leave ${link}"`;
    if (network !== undefined) throw new NotJoined(problem);
    tools.warn(problem);
  }
  return states.filter(isJoined);
}

export function isJoined(state: State): state is Joined {
  return state.membership !== null;
}

function namesOf({ interface: link, membership }: State): string[] {
  return membership === null ? [link] : [link, String(membership.map.id), membership.map.name];
}
