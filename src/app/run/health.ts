/** Seconds that a turn may take: its tools and requests have deadlines of their own, which together are below this. */
const longestTurn = 300;
/** Seconds that a turn may come too late, on a machine with much else to do. */
const slack = 60;

/** How one network stands, for whoever supervises the daemon. */
export interface Standing {
  readonly link: string;
  /** Whether a pass over it began and ended since everything was last to be looked at anew. */
  readonly isSettled: boolean;
  /** Why it could not be made right; null when it could. */
  readonly trouble: string | null;
}

/** What is known of the passes over one network: whether they go on, and what came of the last one. */
export class Health {
  readonly #link: string;
  readonly #clock: () => number;
  #isTurning = false;
  #since: number;
  /** Counts the requests to look at everything anew; and for which of them the turn under way, and the last one, was. */
  #round = 0;
  #turnOf = -1;
  #settled = -1;
  #trouble: string | null = null;

  /** @param clock seconds of a clock that stands still while the host sleeps */
  constructor(link: string, clock: () => number) {
    this.#link = link;
    this.#clock = clock;
    this.#since = clock();
  }

  get standing(): Standing {
    return { link: this.#link, isSettled: this.#settled === this.#round, trouble: this.#trouble };
  }

  /** True when a turn does not end, or the next is overdue that was to begin within `pause` seconds. */
  isStuck(pause: number): boolean {
    return this.#clock() - this.#since > (this.#isTurning ? longestTurn : pause + slack);
  }

  startOver(): void {
    this.#round += 1;
  }

  begin(): void {
    this.#isTurning = true;
    this.#turnOf = this.#round;
    this.#since = this.#clock();
  }

  fail(error: unknown): void {
    this.#trouble = error instanceof Error ? error.message : String(error);
  }

  heal(): void {
    this.#trouble = null;
  }

  end(): void {
    this.#isTurning = false;
    this.#settled = this.#turnOf;
    this.#since = this.#clock();
  }
}
