/** Runs work one at a time. Requests that come while it runs lead to one more run. */
export class OneAtATime {
  readonly #work: () => Promise<void>;
  #isDue = false;
  #isRunning = false;

  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  request(): void {
    this.#isDue = true;
    if (!this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      while (this.#isDue) {
        this.#isDue = false;
        await this.#work();
      }
    } finally {
      this.#isRunning = false;
    }
  }
}
