/**
 * What starts a pass. However often it rings while nobody listens, the listener wakes once; a ring that is due later gives way
 * to one that is due sooner.
 */
export class Bell {
  #rang = false;
  /** When it rings next, in milliseconds of performance.now(). */
  #due = Number.POSITIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #wake: () => void = () => {};

  ring(inMs = 0): void {
    const due = performance.now() + inMs;
    if (this.#rang || due >= this.#due) return;
    this.#due = due;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#rang = true;
      this.#wake();
    }, inMs);
  }

  /** Resolves when it rings, at once where it rang since the last time; what was due later is forgotten. */
  async rung(): Promise<void> {
    if (!this.#rang) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    this.silence();
  }

  /** Forgets every ring, so that nothing of it keeps the process from its end. */
  silence(): void {
    clearTimeout(this.#timer);
    this.#rang = false;
    this.#due = Number.POSITIVE_INFINITY;
  }
}
