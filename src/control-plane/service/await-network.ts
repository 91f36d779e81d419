import type { Caller } from '../caller.ts';
import { NotFound, Unauthenticated } from '../errors.ts';
import type { Context } from './context.ts';
import { createLooks, type Look } from './look.ts';

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

export interface Awaited {
  readonly revision: number;
  /** The wait ended before there was another one. */
  readonly isKnown: boolean;
}

/** Waits until a network has a revision that the caller doesn't know, or the wait ends; null when the caller went away. */
export type AwaitNetwork = (caller: Caller, id: number, wait: Wait) => Promise<Awaited | null>;

/** Between looks a wait holds nothing of the database, and those who are woken together look once. */
export function createAwaitNetwork(context: Context): AwaitNetwork {
  const lookAt = createLooks(context);
  return async (first, id, wait) => {
    let caller = first;
    let woken = false;
    for (let over = wait.signal.aborted; ; ) {
      // Waiting begins before the look at the revision, so that a change in between ends it.
      const changed = context.waiters.wait(id, wait.signal);
      const look = await lookAt(caller.organizationId, id);
      if (woken) caller = await recognizeAmong(look, caller, wait);
      if (!look.network || (caller.kind === 'peer' && caller.networkId !== id)) throw new NotFound('network');
      const { revision } = look.network;
      const isKnown = wait.isKnown(revision);
      if (!isKnown || over) return { revision, isKnown };
      over = !(await changed);
      if (wait.isGone()) return null;
      // Whose time is over comes alone.
      woken = !wait.signal.aborted;
      if (!woken) caller = await wait.recognize();
    }
  };
}

/** Peers, who are many, are recognised by one list of all: the token of a peer lives as long as the peer. */
async function recognizeAmong(look: Look, caller: Caller, wait: Wait): Promise<Caller> {
  if (caller.kind !== 'peer') return wait.recognize();
  if ((await look.peers()).has(caller.peerId)) return caller;
  throw new Unauthenticated('the bearer token is unknown or has expired');
}
