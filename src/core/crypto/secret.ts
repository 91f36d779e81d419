import { inspect } from 'node:util';

const shown = '[secret]';

/**
 * A value that must not be seen: a private key, an enrolment key, a token. It prints, logs and serialises as
 * `[secret]`; only `reveal()` gives it up, so that a reader can find every place that does.
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

/** Leaves of each enrolment key and token its prefix only. */
export function maskTokens(text: string): string {
  return text.replace(/\b(cp[npstu]_)[\w.~+/=-]+/g, '$1[secret]');
}
