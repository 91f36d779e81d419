import type { Logger } from 'pino';
import { failureFields } from '../errors.ts';

/** Logs when a part of health begins to fail, when its reason changes, and when all work again. */
export class FailureLog {
  readonly #log: Pick<Logger, 'info' | 'error'>;
  /** The reasons by failing part. */
  readonly #failing = new Map<string | number, string>();

  constructor(log: Pick<Logger, 'info' | 'error'>) {
    this.#log = log;
  }

  /** Records the outcome of a part's work: an error, or null. */
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
