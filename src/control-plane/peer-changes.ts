import { TooManyRequests } from './errors.ts';

/** How often peers may change themselves. */
export interface PeerChanges {
  /** Counts a change; refuses it when the peer made too many, unless it is one that must always be possible. */
  take(peer: number, always: boolean): void;
}

const minuteMs = 60_000;

/**
 * Each peer may make `most` changes at once, and gets one back a minute: each wakes every host of its network. A change that must
 * always be possible takes one where there is one: what it undoes later takes another.
 */
export function createPeerChanges(most: number, now: () => Date): PeerChanges {
  /** When each peer will have all its changes back; those who have are forgotten. */
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
