import { TooManyRequests } from '../errors.ts';

/** Limits what peers do, such as the changes that they make of themselves. */
export interface PeerChangeLimit<Key = number> {
  /**
   * Counts a change, or so many at once, and returns what takes that back: for a change that fails. More than the limit count as the limit.
   *
   * @throws TooManyRequests beyond the limit, unless `always` is set
   */
  take(peer: Key, always: boolean, changes?: number): () => void;
  /** Counts nothing. @throws TooManyRequests where another change is beyond the limit */
  check(peer: Key): void;
  /** True where so many more changes are within the limit. */
  hasRoom(peer: Key, changes?: number): boolean;
}

/**
 * Each peer may make `most` changes at once, and by default one more each minute: a change notifies every host of its network. A change
 * with `always` is never refused, and counts as long as the peer is below the limit.
 *
 * @param now milliseconds, by a clock that is never set
 */
export function createPeerChangeLimit<Key = number>(
  most: number,
  now: () => number,
  refillMs = 60_000,
  what = 'changes of this peer by itself',
): PeerChangeLimit<Key> {
  /** When each peer has all its changes again; entries in the past are removed. */
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
