import type { Logger } from 'pino';
import { failureFields } from '../errors.ts';

/** Logs when parts of health begin to fail, when the reason changes, and when all of them work again. */
export class FailureLog {
  readonly #log: Pick<Logger, 'info' | 'error'>;
  /** The reasons of the parts that fail. */
  readonly #failing = new Map<string | number, string>();

  constructor(log: Pick<Logger, 'info' | 'error'>) {
    this.#log = log;
  }

  /** Notes how a part ended its work: with an error, or with null. */
  note(part: string | number, error: unknown): void {
    if (error === null) {
      if (this.#failing.delete(part) && this.#failing.size === 0) this.#log.info('health updated again');
      return;
    }
    const reason = String(error);
    const isKnown = [...this.#failing.values()].includes(reason);
    this.#failing.set(part, reason);
    if (!isKnown) this.#log.error(failureFields(error), 'health not updated');
  }
}
