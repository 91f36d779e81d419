import { TooManyRequests } from '../errors.ts';

/** Limits the changes that peers make of themselves. */
export interface PeerChangeLimit {
  /** Counts a change. @throws TooManyRequests beyond the limit, unless `always` is set */
  take(peer: number, always: boolean): void;
}

const minuteMs = 60_000;

/**
 * Each peer may make `most` changes at once, and one more each minute: a change notifies every host of its network. A change with
 * `always` is never refused, and counts as long as the peer is below the limit.
 */
export function createPeerChangeLimit(most: number, now: () => Date): PeerChangeLimit {
  /** When each peer has all its changes again; entries in the past are removed. */
  const full = new Map<number, number>();
  let room = 10_000;
  const makeRoom = (at: number) => {
    for (const [peer, when] of full) if (when <= at) full.delete(peer);
    room = Math.max(10_000, 2 * full.size);
  };
  return {
    take: (peer, always) => {
      const at = now().getTime();
      if (full.size >= room) makeRoom(at);
      const when = Math.max(full.get(peer) ?? 0, at) + minuteMs;
      const waitMs = when - at - most * minuteMs;
      if (waitMs <= 0) full.set(peer, when);
      else if (!always) throw new TooManyRequests('changes of this peer by itself', Math.ceil(waitMs / 1000));
    },
  };
}
