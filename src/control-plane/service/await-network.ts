import type { Network } from '../../contract/network.ts';
import type { Caller } from '../caller.ts';
import type { Context } from './context.ts';
import { readNetwork, requireNetwork } from './networks.ts';

/** What a caller has of a network, and how long it waits for another revision. */
export interface Wait {
  readonly isKnown: (revision: number) => boolean;
  /** Ends the wait. A caller that doesn't wait brings one that is aborted. */
  readonly signal: AbortSignal;
  /** Nobody is there any more to be answered. */
  readonly isGone: () => boolean;
  /** Who calls, found out anew: a wait may outlive the caller's rights. */
  readonly recognize: () => Promise<Caller>;
}

export type Awaited =
  | { readonly revision: number; readonly network: Network | null }
  /** The caller went away. */
  | null;

/** Reads a network once its revision is one that the caller doesn't know; without the network when the wait ends before. */
export type AwaitNetwork = (caller: Caller, id: number, wait: Wait) => Promise<Awaited>;

/** Between its looks at the revision a wait holds nothing of the database. */
export function createAwaitNetwork(context: Context): AwaitNetwork {
  const load = createSharedLoad(context);
  return async (first, id, wait) => {
    let caller = first;
    for (let over = wait.signal.aborted; ; ) {
      // Waiting begins before the look at the revision, so that a change in between ends it.
      const changed = context.waiters.wait(id, wait.signal);
      const { revision } = await requireNetwork(context.db, caller, id);
      if (!wait.isKnown(revision)) {
        const network = await load(caller, id, revision);
        return { revision: network.revision, network };
      }
      if (over) return { revision, network: null };
      over = !(await changed);
      if (wait.isGone()) return null;
      caller = await wait.recognize();
    }
  };
}

/** Loads a network once for all who ask meanwhile, having seen the same revision; each has been let in by itself. */
function createSharedLoad(context: Context): (caller: Caller, id: number, revision: number) => Promise<Network> {
  const loading = new Map<string, Promise<Network>>();
  return (caller, id, revision) => {
    const key = `${id} ${revision}`;
    const shared = loading.get(key);
    if (shared) return shared;
    const mine = readNetwork(context, caller, id).finally(() => loading.delete(key));
    loading.set(key, mine);
    return mine;
  };
}
