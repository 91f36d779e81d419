import { type CpnError, expectCpnError } from '../../core/errors/index.ts';
import type { State } from '../../store/state/state.ts';
import { cleanUp } from '../reconcile/cleanup.ts';
import { type SelectedNetworks, selectMeant } from '../select.ts';
import type { StateTools, Tools } from '../tools.ts';

/**
 * Takes networks down and keeps them down until `bringUp`; their state stays.
 *
 * @throws the first failure, after all networks were processed
 */
export async function takeDown(tools: Tools, network?: string, all = false): Promise<string[]> {
  return tools.store.lock(async () => {
    const { states, unreadable } = await selectMeant(tools.store, network, all);
    return forEachState(tools, { states, unreadable }, async (state) => {
      // Saved first: a pass in between must not bring it up again.
      const { deletion } = state;
      const disabled = { ...state, enabled: false, ...(deletion && { deletion: { ...deletion, resumes: false } }) };
      await tools.store.write(disabled);
      await cleanUp(tools, disabled);
      return state.interface;
    });
  });
}

/** A failure of one network does not stop the others: it is thrown after all were processed. */
export async function forEachState<Result>(
  tools: StateTools,
  { states, unreadable }: SelectedNetworks,
  work: (state: State) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const failures: CpnError[] = [];
  for (const { interface: link } of states) {
    try {
      // A network before this one may have transferred resources to its receipt.
      const state = await tools.store.read(link);
      if (state !== null) results.push(await work(state));
    } catch (error) {
      failures.push(expectCpnError(error));
    }
  }
  const [failure, ...others] = [...failures, ...unreadable.map(({ error }) => error)];
  for (const { message } of others) tools.warn(message);
  if (failure) throw failure;
  return results;
}
