import type { Random } from '../tokens.ts';

/** One revision of a network in one history of the database: after a restore the same number is another revision. */
export interface Revision {
  readonly revision: number;
  readonly nonce: string;
}

/** What tells a revision from the same number in another history. */
export function makeNonce(random: Random): string {
  return Buffer.from(random(9)).toString('base64url');
}

export function isSameRevision(one: Revision, other: Revision): boolean {
  return one.revision === other.revision && one.nonce === other.nonce;
}
