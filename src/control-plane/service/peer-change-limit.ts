import { TooManyRequests } from '../errors.ts';

export interface PeerChangeLimit<Key = number> {
  /**
   * Counts changes; a number above the limit counts as the limit. Returns an undo function.
   * @throws TooManyRequests beyond the limit, unless `always` is set
   */
  take(peer: Key, always: boolean, changes?: number): () => void;
  /** Checks without counting. @throws TooManyRequests if another change is beyond the limit */
  check(peer: Key): void;
  hasRoom(peer: Key, changes?: number): boolean;
}

/** The counts of a transaction that may run again: each attempt begins without earlier counts. */
export interface AttemptCounts {
  /** Undoes what was counted so far; to be called first in each attempt. */
  restart(): void;
  /** @param undo as {@link PeerChangeLimit.take} returns it */
  add(undo: () => void): void;
}

export function createAttemptCounts(): AttemptCounts {
  const undoes: (() => void)[] = [];
  return {
    restart: () => {
      for (const undo of undoes.splice(0)) undo();
    },
    add: (undo) => void undoes.push(undo),
  };
}

/**
 * Allows each peer `most` changes at once, and one more per `refillMs`, because a change notifies
 * every host. `always` is never refused, and counts below the limit.
 * @param now milliseconds of a monotonic clock
 */
export function createPeerChangeLimit<Key = number>(
  most: number,
  now: () => number,
  refillMs = 60_000,
  what = 'changes of this peer by itself',
): PeerChangeLimit<Key> {
  /** When each peer has all its changes again. Entries in the past are removed. */
  const full = new Map<Key, number>();
  let room = 10_000;
  const makeRoom = (at: number) => {
    for (const [peer, when] of full) if (when <= at) full.delete(peer);
    room = Math.max(10_000, 2 * full.size);
  };
  const count = (peer: Key, at: number, changes = 1) => {
    const when = Math.max(full.get(peer) ?? 0, at) + changes * refillMs;
    return { when, waitMs: when - at - most * refillMs };
  };
  const refuseBeyond = (waitMs: number) => {
    if (waitMs > 0) throw new TooManyRequests(what, Math.ceil(waitMs / 1000));
  };
  return {
    check: (peer) => refuseBeyond(count(peer, now()).waitMs),
    hasRoom: (peer, changes) => count(peer, now(), changes).waitMs <= 0,
    take: (peer, always, asked = 1) => {
      const at = now();
      if (full.size >= room) makeRoom(at);
      const changes = Math.min(asked, most);
      const { when, waitMs } = count(peer, at, changes);
      if (waitMs > 0) {
        if (!always) refuseBeyond(waitMs);
        return () => undefined;
      }
      full.set(peer, when);
      return () => {
        const until = full.get(peer);
        if (until !== undefined) full.set(peer, until - changes * refillMs);
      };
    },
  };
}
