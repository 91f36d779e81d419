import type { Caller } from '../domain/caller.ts';

/** Long polls of one peer and of one user at once. A host has one, and after a lost connection perhaps an old one. */
export const maxWaits = { peer: 8, user: 200 } as const;

/** Limits the long polls of each caller: each takes a connection. */
export interface WaitLimit {
  /**
   * Adds a wait. If the caller is at its limit, this calls `end` of its oldest wait.
   *
   * @returns a function that removes the wait
   */
  add(caller: Caller, end: () => void): () => void;
}

export function createWaitLimit(most: Readonly<Record<Caller['kind'], number>> = maxWaits): WaitLimit {
  /** The `end` functions of each caller, the oldest first. */
  const held = new Map<string, Set<() => void>>();
  return {
    add: (caller, end) => {
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
