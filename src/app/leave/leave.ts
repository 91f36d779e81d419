import { NotJoined } from '../../core/errors/index.ts';
import type { State } from '../../store/state/state.ts';
import { forEachState } from '../networks/down.ts';
import { describeFormer, listFormer, recordFormer, selectFormer } from '../networks/former-networks.ts';
import { describeStaying, tryRemoval } from '../networks/remove-peer.ts';
import { cleanUp, deleteState } from '../reconcile/cleanup.ts';
import { isJoined, type SelectedNetworks, selectMeant } from '../select.ts';
import type { StateTools, Tools } from '../tools.ts';

/** What leaving a network did. */
export interface LeaveReport {
  readonly interface: string;
  /** Whether the control plane forgot this peer too; false where it could not be asked. */
  readonly removed: boolean;
  /** Whether identity and token are kept, so that this host can still remove or replace the peer. */
  readonly former: boolean;
}

/**
 * The networks to leave: the only one, or with `all` each, where nothing is named. None where `network` names one that was left already.
 *
 * @throws WrongUsage as {@link selectMeant}
 * @throws NotJoined where it names neither
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
 * Leaves networks: takes the peer out of the network where the service can, takes everything back from the host, and
 * removes file and state. Also clears what an unfinished join left.
 *
 * @param links the interfaces; all by default. A name would be read again here, and its owner may have changed it since it was confirmed.
 * @param keepsPeer leaves the peer in its network, for another host that has its identity too, and keeps nothing of it here
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

/** Takes the peer out of its network; where that cannot be done now, keeps what it takes to do it later. Says what stays behind. */
async function leaveService(tools: Tools, state: State): Promise<Omit<LeaveReport, 'interface'>> {
  const problem = await tryRemoval(tools, state);
  if (problem === null) return { removed: true, former: false };
  const kept = isJoined(state) ? await recordFormer(tools, state) : null;
  tools.warn(kept === null ? describeStaying(state, problem) : `${problem}; ${describeFormer(kept)}`);
  return { removed: false, former: kept !== null };
}
