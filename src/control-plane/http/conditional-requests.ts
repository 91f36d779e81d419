import type { Revision } from '../store/changes.ts';

/**
 * What proxies that compress append to an ETag: "-gzip" (Apache's DeflateAlterETag), "--gzip" (Jetty), ";gzip" (older Apaches), also
 * for other codings.
 */
const codingSuffix = /[-;](?:gzip|br|deflate|zstd)(?="$)/;
const jettySuffix = /--(?:gzip|br|deflate|zstd)(?="$)/;

/**
 * True when an If-None-Match header names this ETag (RFC 9110, 13.1.2: weak comparison, a list, or any), also as a proxy that compresses
 * writes it.
 */
export function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  return ifNoneMatch.split(',').some((part) => {
    const named = part.trim().replace(/^W\//, '');
    // An ETag may itself end with the hyphen that a suffix of two hyphens begins with.
    return named === '*' || [named, named.replace(codingSuffix, ''), named.replace(jettySuffix, '')].includes(etag);
  });
}

/** True when a header such as A-IM (RFC 3229, 10.5.3) or Accept lists this value by name, with a weight that is not 0. */
export function accepts(header: string | undefined, value: string): boolean {
  return (header ?? '').split(',').some((part) => {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    return name === value && !parameters.some((parameter) => /^q\s*=\s*0(?:\.0*)?$/.test(parameter));
  });
}

/** A random nonce has 12 characters. The last one may be a hyphen. */
const ownETag = /^(?:W\/)?"(0|[1-9][0-9]{0,14})-([\w-]{12}|[\w-]{1,64}?)(?:(?:--?|;)(?:gzip|br|deflate|zstd))?"$/;

/** The revision that If-None-Match names as the one that the caller has: one ETag of ours, also weak or with a suffix; or null. */
export function baseOf(ifNoneMatch: string | undefined): Revision | null {
  const [, digits, nonce] = ownETag.exec((ifNoneMatch ?? '').trim()) ?? [];
  return digits === undefined || nonce === undefined ? null : { revision: Number(digits), nonce };
}

/** Below the 50 s after which Debian's haproxy gives up on a server, and the 60 s of nginx and of most load balancers. */
export const longestWait = 45;

// A quoted string without an end reaches to the end of the header, so the match needs no backtracking.
const preferences = /(?:[^",]|"(?:[^"\\]|\\.)*\\?(?:"|$))+/g;
const waitPreference = /^\s*wait\s*(?:=\s*(?:([0-9]+)|"([0-9]+)")\s*)?(?:;.*)?$/i;
const nameOfWait = /^\s*wait\s*(?:[=;]|$)/i;

/**
 * The seconds of `wait` in a Prefer header (RFC 7240), {@link longestWait} at most; null without it, or when it is malformed. The first of
 * several counts.
 */
export function readWait(prefer: string | undefined): number | null {
  const first = (prefer ?? '').match(preferences)?.find((preference) => nameOfWait.test(preference));
  const [, plain, quoted] = waitPreference.exec(first ?? '') ?? [];
  const seconds = plain ?? quoted;
  return seconds === undefined ? null : Math.min(Number(seconds), longestWait);
}
