/** The most seconds of an iteration, above the sum of its tools' and requests' deadlines. */
const longestIteration = 300;
/** Seconds that an iteration may start late, on a machine under load. */
const slack = 60;

/** The status of one loop, for the supervisor. */
export interface LoopStatus {
  readonly link: string;
  /** True if an iteration began and ended since the last {@link LoopHealth.startOver}. */
  readonly isSettled: boolean;
  /** Why the last iteration failed; null if it succeeded. */
  readonly problem: string | null;
}

/** Tracks whether a loop of the daemon still runs, and how its last iteration ended. */
export class LoopHealth {
  readonly #link: string;
  readonly #clock: () => number;
  #isRunning = false;
  #since: number;
  /** The number of calls of startOver(): now, and at the current and last iteration. */
  #round = 0;
  #current = -1;
  #settled = -1;
  #problem: string | null = null;

  /** @param clock seconds of a clock that stops while the host sleeps */
  constructor(link: string, clock: () => number) {
    this.#link = link;
    this.#clock = clock;
    this.#since = clock();
  }

  get status(): LoopStatus {
    return { link: this.#link, isSettled: this.#settled === this.#round, problem: this.#problem };
  }

  /** True if an iteration does not end, or the next one, due within `pause` seconds, is overdue. */
  isStuck(pause: number): boolean {
    return this.#clock() - this.#since > (this.#isRunning ? longestIteration : pause + slack);
  }

  startOver(): void {
    this.#round += 1;
  }

  begin(): void {
    this.#isRunning = true;
    this.#current = this.#round;
    this.#since = this.#clock();
  }

  fail(error: unknown): void {
    this.#problem = error instanceof Error ? error.message : String(error);
  }

  heal(): void {
    this.#problem = null;
  }

  end(): void {
    this.#isRunning = false;
    this.#settled = this.#current;
    this.#since = this.#clock();
  }
}
