import type { PathEnd } from '../../../core/paths/direct-paths.ts';

/** Milliseconds without another path to a peer that answered nothing over one. */
const silentMs = 30 * 60_000;
/** Milliseconds within which a path without answers ends. A later loss has another cause. */
const provedMs = 10_000;

/**
 * Peers whose path only a handshake proves. A firewall may drop all else: a peer that answers
 * nothing over such a path gets none for a while.
 */
export class UnprobedPaths {
  readonly #now: () => number;
  /** When each path began. */
  readonly #inUse = new Map<number, number>();
  /** Until when a peer gets no such path. */
  readonly #silent = new Map<number, number>();

  /** @param now milliseconds of a monotonic clock */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** False if the peer answered nothing over its last path. */
  accept(peer: number): boolean {
    if ((this.#silent.get(peer) ?? 0) > this.#now()) return false;
    this.#inUse.set(peer, this.#now());
    return true;
  }

  /** The peer answered a probe. */
  clear(peer: number): void {
    this.#silent.delete(peer);
  }

  end(peer: number, why: PathEnd | null): void {
    const since = this.#inUse.get(peer);
    this.#inUse.delete(peer);
    if (since === undefined || why !== 'lost' || this.#now() - since >= provedMs) return;
    this.#silent.set(peer, this.#now() + silentMs);
  }
}
