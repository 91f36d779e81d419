import { maskTokens, Secret } from './secret.ts';

/** The words of every Secret that is somewhere in a value; shorter ones than these are found by chance. */
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

/** A text without these words, and without anything that has the form of a token or an enrolment key. */
export function redact(text: string, secrets: ReadonlySet<string>): string {
  return maskTokens([...secrets].reduce((left, word) => left.replaceAll(word, '[secret]'), text));
}
