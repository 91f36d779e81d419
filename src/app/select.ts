import { NotJoined, quote } from '../core/errors/index.ts';
import type { Joined, State } from '../store/state/state.ts';
import type { Listing, Store } from '../store/store.ts';
import type { Tools } from './tools.ts';

/** The networks that a command is for. Those that cannot be read are for the caller to report, when it has done the others. */
export interface Selection<S extends State = State> {
  readonly states: readonly S[];
  readonly unreadable: Listing['unreadable'];
}

/**
 * The networks of this host that `network` names: an interface, a network's id or its name; all of them when nothing is
 * named.
 *
 * @throws NotJoined when something is named that this host has not joined
 * @throws what makes its state unreadable, when an interface is named
 */
export async function selectStates(store: Store, network: string | undefined): Promise<Selection> {
  const { states, unreadable } = await store.list();
  if (network === undefined) return { states, unreadable };
  const chosen = states.filter(({ interface: link, membership }) =>
    [link, ...(membership ? [String(membership.map.id), membership.map.name] : [])].includes(network),
  );
  if (chosen.length > 0) return { states: chosen, unreadable: [] };
  for (const { interface: link, error } of unreadable) if (link === network) throw error;
  const joined = states.map((state) => state.interface).join(', ') || 'none';
  const hidden = unreadable.map((each) => each.interface).join(', ');
  const rest = hidden && `, and what cannot be read: ${hidden}`;
  const next = states.length === 0 ? '; "cpn join" joins one' : '; name one of these';
  throw new NotJoined(
    `this host has not joined a network ${quote(network)}; joined: ${joined}${rest}${hidden ? '' : next}`,
  );
}

/** Like {@link selectStates}, without those whose join was never finished, with a warning for each. */
export async function selectJoined(tools: Tools, network: string | undefined): Promise<Selection<Joined>> {
  const { states, unreadable } = await selectStates(tools.store, network);
  for (const { interface: link } of states.filter((state) => !isJoined(state))) {
    const problem = `the join of ${link} was not finished; run "cpn join" with the same key again, or "cpn leave ${link}"`;
    if (network !== undefined) throw new NotJoined(problem);
    tools.warn(problem);
  }
  return { states: states.filter(isJoined), unreadable };
}

/** Throws why the first of them cannot be read, if there is one. */
export function refuseUnreadable(unreadable: Listing['unreadable']): void {
  for (const { error } of unreadable) throw error;
}

export function isJoined(state: State): state is Joined {
  return state.membership !== null;
}
