/** Ends waits for a network's change. The process that commits or receives it calls `notify`. */
export class ChangeNotifier {
  readonly #waits = new Map<number, Set<() => void>>();
  readonly #listeners: ((network: number) => void)[] = [];
  readonly #intervalMs: number;
  /** Networks whose waits have just ended, with the timer until they may end again. */
  readonly #notified = new Map<number, NodeJS.Timeout>();
  /** The networks of `#notified` that have changed again. */
  readonly #again = new Set<number>();
  #closed = false;

  /** @param intervalMs between two ends of a network's waits; changes meanwhile count as one */
  constructor(intervalMs = 0) {
    this.#intervalMs = intervalMs;
  }

  /** Calls the listener at each change, even if no request waits. */
  subscribe(listener: (network: number) => void): void {
    this.#listeners.push(listener);
  }

  /**
   * True after a change; false when the signal aborts or the notifier closes. The wait begins with
   * the call: a caller that reads the revision afterwards misses no change.
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
    for (const listener of this.#listeners) listener(network);
    if (this.#notified.has(network)) this.#again.add(network);
    else this.#wake(network);
  }

  /** Ends all waits, for the case that changes may have been missed. */
  notifyAll(): void {
    for (const network of this.#waits.keys()) this.#wakeAll(network);
  }

  /** Ends all waits, and every later one immediately. */
  close(): void {
    this.#closed = true;
    for (const timer of this.#notified.values()) clearTimeout(timer);
    this.#notified.clear();
    this.notifyAll();
  }

  count(network?: number): number {
    if (network !== undefined) return this.#waits.get(network)?.size ?? 0;
    return [...this.#waits.values()].reduce((sum, { size }) => sum + size, 0);
  }

  #wake(network: number): void {
    this.#wakeAll(network);
    if (this.#intervalMs === 0 || this.#closed) return;
    const timer = setTimeout(() => {
      this.#notified.delete(network);
      if (this.#again.delete(network)) this.#wake(network);
    }, this.#intervalMs);
    timer.unref();
    this.#notified.set(network, timer);
  }

  #wakeAll(network: number): void {
    for (const wake of this.#waits.get(network) ?? []) wake();
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
