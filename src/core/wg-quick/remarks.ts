/** Clauses about unused settings. Beyond the limit, only their number. */
export class Remarks {
  readonly #clauses: string[] = [];
  #more = 0;

  add(clause: string): void {
    if (this.#clauses.length < mostRemarks) this.#clauses.push(clause);
    else this.#more += 1;
  }

  finish(): readonly string[] {
    return this.#more === 0 ? this.#clauses : [...this.#clauses, `${this.#more} more lines are not used`];
  }
}

const mostRemarks = 20;
