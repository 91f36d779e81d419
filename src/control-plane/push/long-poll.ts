import { awaitsApproval, type Caller, type PeerCaller } from '../domain/caller.ts';
import { NotFound, Unauthenticated } from '../errors.ts';
import type { Revision } from '../store/changes.ts';
import type { Db } from '../store/tables.ts';
import type { ChangeNotifier } from './change-notifier.ts';
import type { MapText } from './map-cache.ts';
import { createSnapshots, type ObservedRevision, type ReadRevision, type Snapshot } from './snapshot.ts';

export interface PollRequest {
  /** True for the revision that the client has. */
  readonly isCurrent: (revision: Revision) => boolean;
  /** Ends the wait. A request without a wait passes an aborted signal. */
  readonly signal: AbortSignal;
  readonly isDisconnected: () => boolean;
  /** Authenticates the request again: a wait may outlive the rights of its caller. */
  readonly authenticate: () => Promise<Caller>;
}

export interface PollResult {
  readonly revision: ObservedRevision;
  /** The client has this revision, and the wait has ended. */
  readonly isUnchanged: boolean;
  /** The map of a peer that waits for approval; absent for every other caller. */
  readonly waitingMap?: MapText;
}

/** Waits for a new revision or the end of the wait. Null if the client has disconnected. */
export type LongPoll = (caller: Caller, id: number, request: PollRequest) => Promise<PollResult | null>;

/**
 * Waits for changes without a database connection. Waits that end by one change share a snapshot.
 * @param readRevision reads the revision of something other than the network; the notifier must
 * announce its changes
 */
export function createLongPoll(
  { db, notifier }: { db: Db; notifier: ChangeNotifier },
  readRevision?: ReadRevision,
): LongPoll {
  const readSnapshot = createSnapshots(db, readRevision);
  return async (first, id, { isCurrent, signal, isDisconnected, authenticate }) => {
    let caller = first;
    for (let [isOver, isFirst] = [signal.aborted, true]; ; isFirst = false) {
      // The wait begins before the read, so that a change in between ends it.
      const changed = notifier.wait(id, signal);
      const snapshot = await readSnapshot(caller.organizationId, id);
      if (caller.kind === 'peer') {
        if (snapshot.network || isFirst) await checkPeer(snapshot, caller, id, authenticate);
        // A deleted network has no tokens. A peer that waited then gets the record of the deletion,
        // or a 404 without one.
        else await authenticate().catch(unlessVoid);
      } else if (!isFirst) {
        caller = await authenticate();
      }
      const { revision } = snapshot;
      if (!revision) throw new NotFound('network');
      const isUnchanged = isCurrent(revision);
      if (isOver || !isUnchanged) return { revision, isUnchanged };
      isOver = !(await changed);
      if (isDisconnected()) return null;
    }
  };
}

function unlessVoid(error: unknown): void {
  if (!(error instanceof Unauthenticated)) throw error;
}

/**
 * Compares the peer's token with those in the snapshot, which saves a query for each peer. Only a
 * peer whose token differs is authenticated again: it has a new token, or is refused with the
 * reason.
 */
async function checkPeer(
  snapshot: Snapshot,
  caller: PeerCaller,
  id: number,
  authenticate: PollRequest['authenticate'],
): Promise<void> {
  if (caller.networkId !== id) throw new NotFound('network');
  if ((await snapshot.peers()).get(caller.peerId) === caller.tokenMark) return;
  // After a restore, a peer that was approved may wait again: the caller has the old state.
  const now = await authenticate();
  if (now.kind === 'peer' && now.awaitsApproval) throw awaitsApproval();
}
