import { maskTokens, type Secret } from '../../core/crypto/secret.ts';
import { printable } from '../../core/errors/index.ts';

/** In place of a text with a secret that may be a word: without the word, the rest of the text would show it. */
const withheld = '[withheld: has a secret]';

/**
 * Text of the reply as it may stand in a message: without the secrets that we sent (a server may echo them), without
 * anything in the shape of a key or token of this service, with nothing that a terminal would obey, and short.
 */
export function sanitizeForMessage(text: string, secrets: readonly Secret[], max: number): string {
  const known = secrets.map((secret) => secret.reveal()).filter((value) => value !== '');
  if (known.some((value) => mayBeWord(value) && text.includes(value))) return withheld;
  // Longest first: a secret that contains another must not leave its remains behind.
  known.sort((a, b) => b.length - a.length);
  const clean = known.reduce((rest, value) => rest.replaceAll(value, '[secret]'), text);
  const line = printable(maskTokens(clean).replace(/\s+/g, ' ').trim());
  return line.length > max ? `${line.slice(0, max - 3)}...` : line;
}

/** A wrong password such as "mail" is a part of "e-mail address". Keys and tokens are longer, and have digits. */
function mayBeWord(secret: string): boolean {
  return secret.length < 8 || /^\p{L}+$/u.test(secret);
}
