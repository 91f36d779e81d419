import { catalogue, type Problem } from '../../core/problems/problem.ts';
import type { Log } from '../tools.ts';

/** Logs each problem at its begin and its end: the title as message, code and facts as fields. */
export class ProblemLog {
  readonly #log: Log;
  #current: ReadonlyMap<string, Problem> = new Map();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Sets the present problems. */
  update(problems: readonly Problem[]): void {
    const before = this.#current;
    this.#current = new Map(problems.map((each) => [nameOf(each), each]));
    for (const [name, { code, facts, remedy }] of this.#current) {
      if (!before.has(name)) this.#log.warn({ code, ...facts, remedy }, catalogue[code].title);
    }
    for (const [name, { code, facts }] of before) {
      if (!this.#current.has(name)) this.#log.info({ code, ...facts }, `over: ${catalogue[code].title}`);
    }
  }
}

/** A day less until an end is no other problem. */
function nameOf({ code, facts }: Problem): string {
  return JSON.stringify([code, { ...facts, days: null }]);
}
