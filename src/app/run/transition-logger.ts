import { CpnError } from '../../core/errors/index.ts';
import { catalogue, type Problem } from '../../core/problems/problem.ts';
import type { Log } from '../tools.ts';

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

/** Leaves out the message, which may have a duration, and the status, which may vary. */
function nameOf(error: unknown): string {
  if (!(error instanceof CpnError)) return String(error);
  const { stderr = '', path = '', drops = '' } = error.facts;
  return [error.name, stderr, path, drops].join(' ');
}

/** Logs each problem at its begin and its end: the title as message, code and facts as fields. */
export class ProblemLog {
  readonly #log: Log;
  #current: ReadonlyMap<string, Problem> = new Map();

  constructor(log: Log) {
    this.#log = log;
  }

  update(problems: readonly Problem[]): void {
    const before = this.#current;
    this.#current = new Map(problems.map((each) => [identify(each), each]));
    for (const [name, { code, facts, remedy }] of this.#current) {
      if (!before.has(name)) this.#log.warn({ code, ...facts, remedy }, catalogue[code].title);
    }
    for (const [name, { code, facts }] of before) {
      if (!this.#current.has(name)) this.#log.info({ code, ...facts }, `over: ${catalogue[code].title}`);
    }
  }
}

/** The days until an end are left out: a day less is no other problem. */
function identify({ code, facts }: Problem): string {
  return JSON.stringify([code, { ...facts, days: null }]);
}
