import { inspect } from 'node:util';

const shown = '[secret]';

/** Prints, logs and serialises as `[secret]`. Only `reveal()` returns it, so uses can be found. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return shown;
  }

  toJSON(): string {
    return shown;
  }

  [inspect.custom](): string {
    return shown;
  }
}

/** Reduces each enrolment key and token to its prefix. */
export function maskTokens(text: string): string {
  return text.replace(/\b(cp[npstu]_)[\w.~+/=-]+/g, '$1[secret]');
}

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
