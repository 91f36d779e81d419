/**
 * Who waits for a network to change. It knows nothing of the database: who commits a change calls {@link Waiters.wake},
 * and so can a listener that hears of changes which another process committed.
 */
export class Waiters {
  readonly #waiting = new Map<number, Set<() => void>>();
  #closed = false;

  /**
   * True once the network was woken, false once the signal aborted or all waits are ended. It waits from the moment of
   * the call: who calls first and looks at the network's revision second misses no change.
   */
  wait(network: number, signal: AbortSignal): Promise<boolean> {
    if (this.#closed || signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const end = (changed: boolean) => {
        signal.removeEventListener('abort', forget);
        this.#remove(network, wake);
        resolve(changed);
      };
      const wake = () => end(!this.#closed);
      const forget = () => end(false);
      signal.addEventListener('abort', forget);
      this.#add(network, wake);
    });
  }

  /** Ends the waits for this network; to be called when a change of it is committed and can be read. */
  wake(network: number): void {
    for (const wake of this.#waiting.get(network) ?? []) wake();
  }

  /** Ends all waits of now, as after a time in which changes may have been missed. */
  wakeAll(): void {
    for (const network of this.#waiting.keys()) this.wake(network);
  }

  /** Ends all waits, and every later one at once. */
  close(): void {
    this.#closed = true;
    this.wakeAll();
  }

  /** How many wait for this network, or for any. */
  count(network?: number): number {
    if (network !== undefined) return this.#waiting.get(network)?.size ?? 0;
    return [...this.#waiting.values()].reduce((sum, { size }) => sum + size, 0);
  }

  #add(network: number, wake: () => void): void {
    const others = this.#waiting.get(network);
    if (others) others.add(wake);
    else this.#waiting.set(network, new Set([wake]));
  }

  #remove(network: number, wake: () => void): void {
    const all = this.#waiting.get(network);
    all?.delete(wake);
    if (all?.size === 0) this.#waiting.delete(network);
  }
}
