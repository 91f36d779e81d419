import { NotJoined } from '../../core/errors/index.ts';
import type { State } from '../../store/state/state.ts';
import { forEachState } from '../networks/down.ts';
import { describeFormer, listFormer, recordFormer, selectFormer } from '../networks/former-networks.ts';
import { describeStaying, tryRemoval } from '../networks/remove-peer.ts';
import { cleanUp, deleteState } from '../reconcile/cleanup.ts';
import { isJoined, type SelectedNetworks, selectMeant } from '../select.ts';
import type { StateTools, Tools } from '../tools.ts';

/** The result of leaving a network. */
export interface LeaveReport {
  readonly interface: string;
  /** True if the control plane removed this peer; false if it was unreachable. */
  readonly removed: boolean;
  /**
   * True if identity and token are kept, so that this host can still remove or replace the peer.
   */
  readonly former: boolean;
}

/**
 * Returns the networks to leave: the named one; without a name the only one, or with `all` each.
 * Empty if `network` names one that was left already.
 *
 * @throws WrongUsage as {@link selectMeant} does
 * @throws NotJoined if it names neither
 */
export async function selectLeaving(
  tools: StateTools,
  network: string | undefined,
  all: boolean,
): Promise<SelectedNetworks> {
  try {
    return await selectMeant(tools.store, network, all);
  } catch (error) {
    if (!(error instanceof NotJoined) || selectFormer(await listFormer(tools), network).length === 0) throw error;
    return { states: [], unreadable: [] };
  }
}

/**
 * Leaves networks: removes the peer from the network if the service can, reverts all changes on the
 * host, and removes file and state. Also removes the remains of an incomplete join.
 *
 * @param links the interfaces; all by default. Names are not accepted: their owner may have changed
 *   them since the user confirmed.
 * @param keepsPeer leaves the peer in its network, for another host that also has its identity, and
 *   keeps nothing of it here
 */
export async function leaveNetworks(
  tools: Tools,
  links?: readonly string[],
  keepsPeer = false,
): Promise<LeaveReport[]> {
  return tools.store.lock(async () => {
    const { states, unreadable } = await tools.store.list();
    const isLeaving = ({ interface: link }: { readonly interface: string }) => links?.includes(link) ?? true;
    const leaving = { states: states.filter(isLeaving), unreadable: unreadable.filter(isLeaving) };
    return forEachState(tools, leaving, async (state) => {
      const { removed, former } = keepsPeer ? stays : await leaveService(tools, state);
      const left = await cleanUp(tools, { ...state, enabled: false });
      await deleteState(tools, left);
      return { interface: state.interface, removed, former };
    });
  });
}

const stays = { removed: false, former: false } as const;

/**
 * Removes the peer from its network. If that is impossible now, keeps what is needed to do it
 * later. Warns of what stays behind.
 */
async function leaveService(tools: Tools, state: State): Promise<Omit<LeaveReport, 'interface'>> {
  const problem = await tryRemoval(tools, state);
  if (problem === null) return { removed: true, former: false };
  const kept = isJoined(state) ? await recordFormer(tools, state) : null;
  tools.warn(kept === null ? describeStaying(state, problem) : `${problem}; ${describeFormer(kept)}`);
  return { removed: false, former: kept !== null };
}
