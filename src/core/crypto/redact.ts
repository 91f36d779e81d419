import { maskTokens, Secret } from './secret.ts';

/** Collects the text of each Secret in a value. Ignores short ones, which would match by chance. */
export function collectSecrets(value: unknown, found = new Set<string>()): ReadonlySet<string> {
  if (value instanceof Secret) {
    const word = value.reveal();
    if (word.length >= leastLength) found.add(word);
  } else if (typeof value === 'object' && value !== null) {
    for (const part of Object.values(value)) collectSecrets(part, found);
  }
  return found;
}

const leastLength = 8;

/** Replaces these words, and everything with the format of a token or enrolment key. */
export function redact(text: string, secrets: ReadonlySet<string>): string {
  return maskTokens([...secrets].reduce((left, word) => left.replaceAll(word, '[secret]'), text));
}
