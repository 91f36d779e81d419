import type { Change } from '../core/change.ts';
import { CpnError } from '../core/errors.ts';
import type { Joined } from '../store/state.ts';
import { apply } from './apply.ts';
import { refresh } from './refresh.ts';
import { selectJoined } from './select.ts';
import { survey } from './survey.ts';
import type { Tools } from './tools.ts';

/** What a pass changed, or would change, in one network. */
export interface PassReport {
  readonly interface: string;
  readonly changes: readonly Change[];
  /** What kept the newest map away; the pass went by the last known one. */
  readonly unsynced: CpnError | null;
  /** What stopped the pass of this network; the others went on. */
  readonly failure: CpnError | null;
}

/** What a pass over the networks would change, and why. Changes nothing. */
export async function planNetworks(tools: Tools, network?: string): Promise<PassReport[]> {
  return eachNetwork(tools, network, async (state) => {
    const refreshed = await refresh(tools, state);
    const changes = state.enabled ? (await survey(tools, refreshed.state)).changes : [];
    return { changes, unsynced: refreshed.failure };
  });
}

/** One pass over the networks: reads the newest maps, and makes the host what it should be. */
export async function reconcileNetworks(tools: Tools, network?: string): Promise<PassReport[]> {
  return tools.store.lock(() =>
    eachNetwork(tools, network, async (state) => {
      const refreshed = await refresh(tools, state);
      await tools.store.writeSync(state.interface, refreshed.sync);
      const planned = state.enabled ? await survey(tools, refreshed.state) : null;
      if (isNews(state, refreshed.state)) await tools.store.write(refreshed.state);
      if (planned) await apply(tools, planned);
      return { changes: planned?.changes ?? [], unsynced: refreshed.failure };
    }),
  );
}

/** Brings networks up from what was last known, asking no control plane. */
export async function bringUp(tools: Tools, network?: string): Promise<PassReport[]> {
  return tools.store.lock(() =>
    eachNetwork(tools, network, async (state) => {
      const enabled: Joined = { ...state, enabled: true };
      const planned = await survey(tools, enabled);
      if (!state.enabled) await tools.store.write(enabled);
      await apply(tools, planned);
      return { changes: planned.changes, unsynced: null };
    }),
  );
}

/** One network's failure is its own; what nobody foresaw stops everything. */
async function eachNetwork(
  tools: Tools,
  network: string | undefined,
  work: (state: Joined) => Promise<Pick<PassReport, 'changes' | 'unsynced'>>,
): Promise<PassReport[]> {
  const reports: PassReport[] = [];
  for (const state of await selectJoined(tools, network)) {
    try {
      reports.push({ interface: state.interface, ...(await work(state)), failure: null });
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      reports.push({ interface: state.interface, changes: [], unsynced: null, failure: error });
    }
  }
  return reports;
}

function isNews(before: Joined, after: Joined): boolean {
  return before.membership !== after.membership || JSON.stringify(before.resolved) !== JSON.stringify(after.resolved);
}
