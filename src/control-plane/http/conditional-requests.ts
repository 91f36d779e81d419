import type { Revision } from '../store/changes.ts';

/**
 * The suffixes that compressing proxies append to an ETag: "-gzip" (Apache's DeflateAlterETag),
 * "--gzip" (Jetty), ";gzip" (older Apache versions), also for other codings.
 */
const codingSuffix = /[-;](?:gzip|br|deflate|zstd)(?="$)/;
const jettySuffix = /--(?:gzip|br|deflate|zstd)(?="$)/;

/** Weak comparison, a list, or any (RFC 9110, 13.1.2), also in the form of a compressing proxy. */
export function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((part) => {
    const named = part.trim().replace(/^W\//, '');
    // An ETag may itself end with the hyphen that a two-hyphen suffix begins with.
    return named === '*' || [named, named.replace(codingSuffix, ''), named.replace(jettySuffix, '')].includes(etag);
  });
}

/** True if a header such as A-IM (RFC 3229, 10.5.3) or Accept lists a value with weight above 0. */
export function accepts(header: string | undefined, value: string): boolean {
  return (header ?? '').split(',').some((part) => {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    return name === value && !parameters.some((parameter) => /^q\s*=\s*0(?:\.0*)?$/.test(parameter));
  });
}

/** A random nonce has 12 characters. The last one may be a hyphen. */
const ownETag = /^(?:W\/)?"(0|[1-9][0-9]{0,14})-([\w-]{12}|[\w-]{1,64}?)(?:(?:--?|;)(?:gzip|br|deflate|zstd))?"$/;

/** The revision in If-None-Match: one ETag of ours, also weak or with a suffix; null for others. */
export function baseOf(ifNoneMatch: string | undefined): Revision | null {
  const [, digits, nonce] = ownETag.exec((ifNoneMatch ?? '').trim()) ?? [];
  return digits === undefined || nonce === undefined ? null : { revision: Number(digits), nonce };
}

/** Below the server timeouts of Debian's haproxy (50 s), nginx and most load balancers (60 s). */
export const longestWait = 45;

// A quoted string without an end extends to the end of the header, so the match never backtracks.
const preferences = /(?:[^",]|"(?:[^"\\]|\\.)*\\?(?:"|$))+/g;
const waitPreference = /^\s*wait\s*(?:=\s*(?:([0-9]+)|"([0-9]+)")\s*)?(?:;.*)?$/i;
const nameOfWait = /^\s*wait\s*(?:[=;]|$)/i;

/** The first `wait` of a Prefer header (RFC 7240) in seconds, capped; null if none or malformed. */
export function readWait(prefer: string | undefined): number | null {
  const first = (prefer ?? '').match(preferences)?.find((preference) => nameOfWait.test(preference));
  const [, plain, quoted] = waitPreference.exec(first ?? '') ?? [];
  const seconds = plain ?? quoted;
  return seconds === undefined ? null : Math.min(Number(seconds), longestWait);
}
