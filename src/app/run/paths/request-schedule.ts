/** Milliseconds between two requests for one peer, which double from the first to the last. */
const retry = { baseMs: 5_000, capMs: 160_000 };
/** The first pause in milliseconds after an attempt without endpoints, which doubles. */
const soonMs = 1_500;

interface Requested {
  /** How often a path was requested since the host last had one. */
  readonly count: number;
  readonly nextAt: number;
}

/** When to request a path to each peer again. */
export class RequestSchedule {
  readonly #now: () => number;
  readonly #requested = new Map<number, Requested>();

  /** @param now milliseconds of a monotonic clock */
  constructor(now: () => number) {
    this.#now = now;
  }

  isDue(peer: number): boolean {
    return this.#now() >= (this.#requested.get(peer)?.nextAt ?? 0);
  }

  note(peer: number): void {
    const count = (this.#requested.get(peer)?.count ?? 0) + 1;
    const pause = Math.min(retry.baseMs * 2 ** (count - 1), retry.capMs) * (0.8 + 0.4 * Math.random());
    this.#requested.set(peer, { count, nextAt: this.#now() + pause });
  }

  /** A connector may observe both hosts soon: nothing was sent to the peer. */
  hurry(peer: number): void {
    const { count, nextAt } = this.#requested.get(peer) ?? { count: 1, nextAt: Number.POSITIVE_INFINITY };
    const soon = this.#now() + soonMs * 2 ** (count - 1);
    this.#requested.set(peer, { count, nextAt: Math.min(nextAt, soon) });
  }

  /** A request for this peer is due at once, as if it were the first. */
  forget(peer: number): void {
    this.#requested.delete(peer);
  }

  clear(): void {
    this.#requested.clear();
  }
}
