import type { PeerCaller } from './caller.ts';

/** A peer as its token tells it, wherever it calls from. */
export type KnownPeer = Omit<PeerCaller, 'address'>;

/**
 * Peers by the hashes of their tokens, those that called last. The token of a peer is the same and its network too as long as the
 * peer is there: whether it still is, who asks must look up.
 */
export class KnownPeers {
  readonly #most: number;
  readonly #peers = new Map<string, KnownPeer>();

  constructor(most = 100_000) {
    this.#most = most;
  }

  get(tokenHash: string): KnownPeer | undefined {
    return this.#peers.get(tokenHash);
  }

  /** To be called whenever it calls: who called longest ago is forgotten first. */
  keep(tokenHash: string, peer: KnownPeer): void {
    this.#peers.delete(tokenHash);
    this.#peers.set(tokenHash, peer);
    if (this.#peers.size <= this.#most) return;
    const [oldest] = this.#peers.keys();
    if (oldest !== undefined) this.#peers.delete(oldest);
  }
}
