import { inspect } from 'node:util';

const shown = '[secret]';

/**
 * A confidential value: a private key, an enrolment key, a token. It prints, logs and serialises as
 * `[secret]`. Only `reveal()` returns it, so that every use can be found.
 */
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
