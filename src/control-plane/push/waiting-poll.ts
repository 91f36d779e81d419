import { NotFound } from '../errors.ts';
import { findNetwork } from '../store/networks.ts';
import { findPeer, isWaiting } from '../store/peers/peers.ts';
import type { Db } from '../store/tables.ts';
import type { ChangeNotifier } from './change-notifier.ts';
import type { LongPoll } from './long-poll.ts';
import { nextLogicalTime } from './snapshot.ts';
import { createWaitingMap } from './waiting-map.ts';

/** The long poll of a peer that waits for approval. The approval ends its wait. */
export function createWaitingPoll({ db, notifier }: { db: Db; notifier: ChangeNotifier }): LongPoll {
  return async (caller, id, { isCurrent, signal, isDisconnected, authenticate }) => {
    if (caller.kind !== 'peer' || caller.networkId !== id) throw new NotFound('network');
    for (let isOver = signal.aborted; ; ) {
      // The wait begins before the reads, so that a change in between ends it.
      const changed = notifier.wait(id, signal);
      // Throws for a peer that was removed, or whose network was deleted.
      await authenticate();
      const network = await findNetwork(db, caller.organizationId, id);
      const peer = await findPeer(db, id, caller.peerId);
      const at = nextLogicalTime();
      if (!network || !peer) throw new NotFound('network');
      if (!isWaiting(peer)) {
        const { revision, nonce } = network;
        return { revision: { revision, nonce, at }, isUnchanged: false };
      }
      const waitingMap = createWaitingMap(network, peer);
      const revision = { ...waitingMap.revision, at };
      const isUnchanged = isCurrent(revision);
      if (isOver || !isUnchanged) return { revision, isUnchanged, waitingMap };
      isOver = !(await changed);
      if (isDisconnected()) return null;
    }
  };
}
