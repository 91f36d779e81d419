import type { Revision } from '../store/changes.ts';

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

/** True when a header such as A-IM (RFC 3229, 10.5.3) or Accept lists this value by name, with a weight that is not 0. */
export function accepts(header: string | undefined, value: string): boolean {
  return (header ?? '').split(',').some((part) => {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    return name === value && !parameters.some((parameter) => /^q\s*=\s*0(?:\.0*)?$/.test(parameter));
  });
}

/** The revision that If-None-Match names as the one that the caller has: one strong ETag as we write it, or null. */
export function baseOf(ifNoneMatch: string | undefined): Revision | null {
  const [, digits, nonce] = /^\s*"(0|[1-9][0-9]{0,14})-([\w-]{1,64})"\s*$/.exec(ifNoneMatch ?? '') ?? [];
  return digits === undefined || nonce === undefined ? null : { revision: Number(digits), nonce };
}

const longestWait = 60;

// A quoted string without an end reaches to the end of the header, so the match needs no backtracking.
const preferences = /(?:[^",]|"(?:[^"\\]|\\.)*\\?(?:"|$))+/g;
const waitPreference = /^\s*wait\s*(?:=\s*(?:([0-9]+)|"([0-9]+)")\s*)?(?:;.*)?$/i;
const nameOfWait = /^\s*wait\s*(?:[=;]|$)/i;

/**
 * The seconds of `wait` in a Prefer header (RFC 7240), 60 at most; null without it, or when it is malformed. The first of
 * several counts.
 */
export function readWait(prefer: string | undefined): number | null {
  const first = (prefer ?? '').match(preferences)?.find((preference) => nameOfWait.test(preference));
  const [, plain, quoted] = waitPreference.exec(first ?? '') ?? [];
  const seconds = plain ?? quoted;
  return seconds === undefined ? null : Math.min(Number(seconds), longestWait);
}
