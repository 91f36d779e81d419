/** The requests that wait for a change of a network. After each commit the process that made it, or that received it, calls {@link ChangeNotifier.notify}. */
export class ChangeNotifier {
  readonly #waits = new Map<number, Set<() => void>>();
  #closed = false;

  /**
   * True after a change of the network, false once the signal has aborted or the notifier has closed. The wait begins with the call: a
   * caller that reads the revision after it misses no change.
   */
  wait(network: number, signal: AbortSignal): Promise<boolean> {
    if (this.#closed || signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const end = (changed: boolean) => {
        signal.removeEventListener('abort', cancel);
        this.#remove(network, wake);
        resolve(changed);
      };
      const wake = () => end(!this.#closed);
      const cancel = () => end(false);
      signal.addEventListener('abort', cancel);
      this.#add(network, wake);
    });
  }

  /** Ends the waits for this network. The change must be committed. */
  notify(network: number): void {
    for (const wake of this.#waits.get(network) ?? []) wake();
  }

  /** Ends all waits, for the case that changes may have been missed. */
  notifyAll(): void {
    for (const network of this.#waits.keys()) this.notify(network);
  }

  /** Ends all waits, and every later one immediately. */
  close(): void {
    this.#closed = true;
    this.notifyAll();
  }

  /** The number of waits for this network, or for all. */
  count(network?: number): number {
    if (network !== undefined) return this.#waits.get(network)?.size ?? 0;
    return [...this.#waits.values()].reduce((sum, { size }) => sum + size, 0);
  }

  #add(network: number, wake: () => void): void {
    const waits = this.#waits.get(network);
    if (waits) waits.add(wake);
    else this.#waits.set(network, new Set([wake]));
  }

  #remove(network: number, wake: () => void): void {
    const waits = this.#waits.get(network);
    waits?.delete(wake);
    if (waits?.size === 0) this.#waits.delete(network);
  }
}
