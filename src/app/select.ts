import { NotJoined, quote, WrongUsage } from '../core/errors/index.ts';
import { findNamed, type Naming } from '../core/names/find-named.ts';
import type { Joined, State } from '../store/state/state.ts';
import type { HostStore, StoredNetworks } from '../store/store.ts';
import type { StateTools } from './tools.ts';

/** A command's networks. The caller reports unreadable ones after it processed the others. */
export interface SelectedNetworks<S extends State = State> {
  readonly states: readonly S[];
  readonly unreadable: StoredNetworks['unreadable'];
}

/**
 * Returns the network that `network` names: an interface, else a unique id or name; all without a
 * name. Members and control planes choose ids and names; this host chooses its interfaces.
 *
 * @throws NotJoined if this host has not joined the named network
 * @throws WrongUsage if an id or name matches several networks
 * @throws the error of an unreadable state, if its interface is named
 */
export async function selectStates(store: HostStore, network: string | undefined): Promise<SelectedNetworks> {
  const { states, unreadable } = await store.list();
  if (network === undefined) return { states, unreadable };
  for (const { interface: link, error } of unreadable) if (link === network) throw error;
  const chosen = findNamed(states, network, networkNaming);
  if (chosen !== null) return { states: [chosen], unreadable: [] };
  const joined = states.map((state) => state.interface).join(', ') || 'none';
  const hidden = unreadable.map((each) => each.interface).join(', ');
  const rest = hidden && `; unreadable: ${hidden}`;
  const next = states.length === 0 ? '; "cpn join" joins one' : '; name one of these';
  throw new NotJoined(
    `this host has not joined a network ${quote(network)}; joined: ${joined}${rest}${hidden ? '' : next}`,
  );
}

/**
 * Like {@link selectStates}, for a command that destroys or interrupts: no name means the only one.
 *
 * @param all true for every network
 * @throws WrongUsage if no name is given, and this host has joined several networks; or if both are
 *   given
 */
export async function selectMeant(
  store: HostStore,
  network: string | undefined,
  all: boolean,
): Promise<SelectedNetworks> {
  if (all && network !== undefined)
    throw new WrongUsage(`${quote(network)} and --all contradict each other; give one of them`);
  const selection = await selectStates(store, network);
  const { states, unreadable } = selection;
  const joined = [...states.map(describeState), ...unreadable.map((each) => each.interface)];
  if (network !== undefined || all || joined.length < 2) return selection;
  throw new WrongUsage(`this host has joined ${joined.length} networks: ${joined.join(', ')}; name one, or give --all`);
}

const networkNaming: Naming<State> = {
  what: 'network',
  ownName: (state) => state.interface,
  names: ({ membership }) => (membership ? [String(membership.map.id), membership.map.name] : []),
  describe: describeState,
  remedy: 'name one by its interface',
};

/** Such as `cpn0 ("office", id 7, https://cp.example.com)`. */
export function describeState({ interface: link, membership, service }: State): string {
  const network = membership ? `${quote(membership.map.name)}, id ${membership.map.id}` : 'join not finished';
  return `${link} (${network}, ${service.url})`;
}

/** Like {@link selectStates}, without incomplete joins, with a warning for each. */
export async function selectJoined(tools: StateTools, network: string | undefined): Promise<SelectedNetworks<Joined>> {
  const { states, unreadable } = await selectStates(tools.store, network);
  for (const { interface: link } of states.filter((state) => !isJoined(state))) {
    const problem = `the join of ${link} was not finished; run "cpn join" with the same key again, or "cpn leave ${link}"`;
    if (network !== undefined) throw new NotJoined(problem);
    tools.warn(problem);
  }
  return { states: states.filter(isJoined), unreadable };
}

export function refuseUnreadable(unreadable: StoredNetworks['unreadable']): void {
  for (const { error } of unreadable) throw error;
}

export function isJoined(state: State): state is Joined {
  return state.membership !== null;
}
