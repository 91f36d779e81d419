import type { Caller, PeerCaller } from '../caller.ts';
import { NotFound, Unauthenticated } from '../errors.ts';
import type { Seen } from '../seen.ts';
import type { Revision } from '../store/revision.ts';
import type { Context } from './context.ts';
import { createLooks, type Look } from './look.ts';

/** What a caller has of a network, and how long it waits for another revision. */
export interface Wait {
  readonly isKnown: (revision: Revision) => boolean;
  /** Ends the wait. A caller that doesn't wait brings one that is aborted. */
  readonly signal: AbortSignal;
  /** Nobody is there any more to be answered. */
  readonly isGone: () => boolean;
  /** Which user calls, found out anew: a wait may outlive the caller's rights. */
  readonly recognize: () => Promise<Caller>;
}

export interface Awaited {
  readonly revision: Seen;
  /** The wait ended before there was another one. */
  readonly isKnown: boolean;
}

/** Waits until a network has a revision that the caller doesn't know, or the wait ends; null when the caller went away. */
export type AwaitNetwork = (caller: Caller, id: number, wait: Wait) => Promise<Awaited | null>;

/**
 * Between looks a wait holds nothing of the database, and those who are woken together look once. Of a peer it makes sure itself
 * that it is in the network; users come recognised.
 */
export function createAwaitNetwork(context: Context): AwaitNetwork {
  const lookAt = createLooks(context);
  return async (first, id, wait) => {
    let caller = first;
    for (let [over, isFirst] = [wait.signal.aborted, true]; ; isFirst = false) {
      // Waiting begins before the look at the revision, so that a change in between ends it.
      const changed = context.waiters.wait(id, wait.signal);
      const look = await lookAt(caller.organizationId, id);
      // The token of a peer is void with its network; one that waited learns why.
      if (caller.kind === 'peer' && (look.network || isFirst)) await checkStillThere(look, caller, id);
      else if (caller.kind === 'user' && !isFirst) caller = await wait.recognize();
      if (!look.network) throw new NotFound('network');
      const { revision: number, nonce, at } = look.network;
      const revision = { revision: number, nonce, at };
      const isKnown = wait.isKnown(revision);
      if (!isKnown || over) return { revision, isKnown };
      over = !(await changed);
      if (wait.isGone()) return null;
    }
  };
}

/** Peers, who are many, are looked up in one list of all: the token of a peer lives as long as the peer. */
async function checkStillThere(look: Look, caller: PeerCaller, id: number): Promise<void> {
  if (caller.networkId !== id) throw new NotFound('network');
  if ((await look.peers()).get(caller.peerId) !== caller.tokenMark) {
    throw new Unauthenticated('the bearer token is unknown or has expired');
  }
}
