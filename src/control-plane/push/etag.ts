import type { Revision } from '../store/changes.ts';

/** The strong ETag of a revision: its number, and the nonce of its history. */
export function formatETag({ revision, nonce }: Revision): string {
  return `"${revision}-${nonce}"`;
}
