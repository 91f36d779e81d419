import { CpnError } from '../../core/errors.ts';
import type { Log } from '../tools.ts';

/** What a trouble of one kind is called in the log when it begins, and when it is over. */
export interface Trouble {
  readonly begins: string;
  readonly ends: string;
}

/** Says a trouble once: when it begins, when it becomes another, and when it is over. */
export class Once {
  readonly #log: Log;
  readonly #facts: object;
  readonly #trouble: Trouble;
  #known: string | null = null;

  constructor(log: Log, facts: object, trouble: Trouble) {
    this.#log = log;
    this.#facts = facts;
    this.#trouble = trouble;
  }

  /** Takes notice of how it stands, null for well; true when that is another thing than before. */
  notice(error: unknown): boolean {
    const name = error === null ? null : nameOf(error);
    if (name === this.#known) return false;
    this.#known = name;
    if (error === null) this.#log.info(this.#facts, this.#trouble.ends);
    else if (error instanceof CpnError) {
      this.#log.warn({ ...this.#facts, error: error.message, kind: error.name }, this.#trouble.begins);
    } else {
      const stack = error instanceof Error ? error.stack : String(error);
      this.#log.error({ ...this.#facts, stack }, 'this should not happen, please report it');
    }
    return true;
  }
}

/** The message may tell how long it took, and so be another each time. A refusal is one trouble, though a later one may have another status. */
function nameOf(error: unknown): string {
  if (!(error instanceof CpnError)) return String(error);
  const { stderr = '', path = '', drops = '' } = error.facts;
  return [error.name, stderr, path, drops].join(' ');
}
