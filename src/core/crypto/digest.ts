import { createHash } from 'node:crypto';

/** The first bytes of a text's SHA-512, in hexadecimal. */
export function digestOf(text: string, bytes: number): string {
  return createHash('sha512').update(text).digest().toString('hex', 0, bytes);
}
