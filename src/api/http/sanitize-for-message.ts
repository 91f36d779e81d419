import { maskTokens, type Secret } from '../../core/crypto/secret.ts';
import { printable } from '../../core/errors/index.ts';

/** Replaces a text with a secret that may be a word: masking only the word would reveal it. */
const withheld = '[withheld: has a secret]';

/**
 * Makes a text of a reply safe for a message: without our secrets (a server may echo them), texts
 * like keys or tokens, and control characters; limited in length.
 */
export function sanitizeForMessage(text: string, secrets: readonly Secret[], max: number): string {
  const known = secrets.map((secret) => secret.reveal()).filter((value) => value !== '');
  if (known.some((value) => mayBeWord(value) && text.includes(value))) return withheld;
  // Longest first: a secret that contains another must not leave a rest.
  known.sort((a, b) => b.length - a.length);
  const clean = known.reduce((rest, value) => rest.replaceAll(value, '[secret]'), text);
  const line = printable(maskTokens(clean).replace(/\s+/g, ' ').trim());
  return line.length > max ? `${line.slice(0, max - 3)}...` : line;
}

/**
 * True for a secret that may be a common word: a wrong password "mail" is a part of "e-mail
 * address". Keys and tokens are longer and contain digits.
 */
function mayBeWord(secret: string): boolean {
  return secret.length < 8 || /^\p{L}+$/u.test(secret);
}
