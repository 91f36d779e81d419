import { isSameRevision, type Revision } from './store/revision.ts';

/**
 * A revision that was seen of a network, and the moment at which the reading of it had ended. Revisions of two histories, before and
 * after a restore of the database, have no order; the moments at which they were read in this process have one.
 */
export interface Seen extends Revision {
  readonly at: number;
}

/** What was kept of a network at a revision, and a moment before it was read. */
export interface Kept {
  readonly revision: Revision;
  readonly read: number;
}

let last = 0;

/** Counts: a later call gives more. */
export function nextMoment(): number {
  last += 1;
  return last;
}

/** True of what is at the revision that was seen, or was read after that. */
export function isFresh({ revision, read }: Kept, seen: Seen): boolean {
  return isSameRevision(revision, seen) || read > seen.at;
}
