import type { Caller } from './caller.ts';

/** How many replies that wait one peer may have at once, and one user. A host has one; who lost a connection may have an old one still. */
export const mostHeldWaits = { peer: 8, user: 200 } as const;

/** The replies that are held back for each caller: each takes a connection. */
export interface HeldWaits {
  /**
   * Counts a wait until it is released; where the caller has as many as it may, `end` of its oldest one is called.
   *
   * @returns what releases it
   */
  hold(caller: Caller, end: () => void): () => void;
}

export function createHeldWaits(most: Readonly<Record<Caller['kind'], number>> = mostHeldWaits): HeldWaits {
  /** What ends the waits of each caller, the oldest first. */
  const held = new Map<string, Set<() => void>>();
  return {
    hold: (caller, end) => {
      const key = `${caller.kind} ${caller.kind === 'peer' ? caller.peerId : caller.userId}`;
      const ends = held.get(key) ?? new Set();
      held.set(key, ends);
      const [oldest] = ends;
      if (oldest !== undefined && ends.size >= most[caller.kind]) {
        ends.delete(oldest);
        oldest();
      }
      ends.add(end);
      return () => {
        ends.delete(end);
        if (ends.size === 0 && held.get(key) === ends) held.delete(key);
      };
    },
  };
}
