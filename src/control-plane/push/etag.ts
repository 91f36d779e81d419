import type { Revision } from '../store/changes.ts';

/** The strong ETag of a revision of one history: its number and its nonce. */
export function formatETag({ revision, nonce }: Revision): string {
  return `"${revision}-${nonce}"`;
}
