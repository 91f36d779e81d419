import { CpnError } from '../../core/errors/index.ts';
import type { Log } from '../tools.ts';

/** The log messages for the begin and the end of a problem. */
export interface TransitionMessages {
  readonly begins: string;
  readonly ends: string;
}

/** Logs a problem once: when it begins, when it changes, and when it ends. */
export class TransitionLogger {
  readonly #log: Log;
  readonly #facts: object;
  readonly #messages: TransitionMessages;
  #current: string | null = null;

  constructor(log: Log, facts: object, messages: TransitionMessages) {
    this.#log = log;
    this.#facts = facts;
    this.#messages = messages;
  }

  /** Sets the present problem, null for none. Returns true if it differs from the last one. */
  update(error: unknown): boolean {
    const name = error === null ? null : nameOf(error);
    if (name === this.#current) return false;
    this.#current = name;
    if (error === null) this.#log.info(this.#facts, this.#messages.ends);
    else if (error instanceof CpnError) {
      this.#log.warn({ ...this.#facts, error: error.message, kind: error.name }, this.#messages.begins);
    } else {
      const stack = error instanceof Error ? error.stack : String(error);
      this.#log.error({ ...this.#facts, stack }, 'this should not happen, please report it');
    }
    return true;
  }
}

/**
 * Leaves out the message, which may contain a duration, and the status of a refusal: they may
 * differ each time.
 */
function nameOf(error: unknown): string {
  if (!(error instanceof CpnError)) return String(error);
  const { stderr = '', path = '', drops = '' } = error.facts;
  return [error.name, stderr, path, drops].join(' ');
}
