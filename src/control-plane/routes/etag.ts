import type { Revision } from '../store/revision.ts';

/** The strong ETag of a revision of one history: its number and its nonce. */
export function formatETag({ revision, nonce }: Revision): string {
  return `"${revision}-${nonce}"`;
}

/** True when an If-None-Match header names this ETag (RFC 9110, 13.1.2: weak comparison, a list, or any). */
export function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((part) => {
    const named = part.trim();
    return named === '*' || named.replace(/^W\//, '') === etag;
  });
}
