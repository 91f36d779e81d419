import type { Revision } from '../store/revision.ts';

/** True when an A-IM header asks for this instance manipulation (RFC 3229, 10.5.3: a list, each with a weight that is not 0). */
export function accepts(aIm: string | undefined, manipulation: string): boolean {
  return (aIm ?? '').split(',').some((part) => {
    const [name = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
    return name === manipulation && !parameters.some((parameter) => /^q\s*=\s*0(?:\.0*)?$/.test(parameter));
  });
}

/** The revision that If-None-Match names as the one that the caller has: one strong ETag as we write it, or null. */
export function baseOf(ifNoneMatch: string | undefined): Revision | null {
  const [, digits, nonce] = /^\s*"(0|[1-9][0-9]{0,14})-([\w-]{1,64})"\s*$/.exec(ifNoneMatch ?? '') ?? [];
  return digits === undefined || nonce === undefined ? null : { revision: Number(digits), nonce };
}
