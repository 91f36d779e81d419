import { createBoundedCache } from '../bounded-cache.ts';
import type { Context } from '../service/context.ts';
import { findLastRemoval, saveAcknowledged } from '../store/removals.ts';
import { transact } from '../store/transact.ts';
import type { FailureLog } from './failure-log.ts';

interface Acknowledging {
  readonly peerId: number;
  readonly networkId: number;
}

export interface AcknowledgementOptions {
  /** Milliseconds in which acknowledgements accumulate before a write. */
  readonly settleMs: number;
  readonly failures: Pick<FailureLog, 'note'>;
}

/** Peers per transaction. SQLite answers no other request during a transaction. */
const batch = 200;
const maxPeers = 200_000;

/**
 * Records which revisions hosts have applied. A host saves a map only after applying it, so it has
 * applied the base of its next request. Only the first record since a peer left the map is written.
 */
export class Acknowledgements {
  readonly #context: Pick<Context, 'db'>;
  readonly #options: AcknowledgementOptions;
  /** By peer: the last revision that this process wrote or found unnecessary to write. */
  readonly #settled = createBoundedCache<number, number>(maxPeers);
  readonly #due = new Map<number, number>();
  /** The last removal of each network, as of the revision `at`. */
  readonly #removals = createBoundedCache<number, { readonly at: number; readonly removal: Promise<number | null> }>(
    maxPeers,
  );
  #soon: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(context: Pick<Context, 'db'>, options: AcknowledgementOptions) {
    this.#context = context;
    this.#options = options;
  }

  /** Records that a peer has applied a revision. It must belong to this history of the database. */
  note(peer: Acknowledging, revision: number): void {
    if ((this.#settled.get(peer.peerId) ?? -1) >= revision) return;
    void this.#settle(peer, revision).catch((error) => this.#options.failures.note('acknowledgements', error));
  }

  stop(): Promise<void> {
    clearTimeout(this.#soon);
    return this.#flush();
  }

  async #settle({ peerId, networkId }: Acknowledging, revision: number): Promise<void> {
    const removal = await this.#lastRemoval(networkId, revision);
    const settled = this.#settled.get(peerId) ?? -1;
    if (removal === null || revision < removal || settled >= removal) return;
    this.#settled.set(peerId, revision);
    this.#due.set(peerId, revision);
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      void this.#flush();
    }, this.#options.settleMs);
  }

  #lastRemoval(network: number, revision: number): Promise<number | null> {
    const known = this.#removals.get(network);
    if (known !== undefined && known.at >= revision) return known.removal;
    const removal = findLastRemoval(this.#context.db, network);
    this.#removals.set(network, { at: revision, removal });
    removal.catch(() => this.#removals.delete(network));
    return removal;
  }

  #flush(): Promise<void> {
    const note = (error: unknown) => this.#options.failures.note('acknowledgements', error);
    this.#writing = this.#writing.then(() => this.#write()).then(() => note(null), note);
    return this.#writing;
  }

  async #write(): Promise<void> {
    const due = [...this.#due].sort(([one], [other]) => one - other);
    this.#due.clear();
    for (let first = 0; first < due.length; first += batch) {
      const part = due.slice(first, first + batch);
      await transact(this.#context.db, async (transaction) => {
        for (const [peer, revision] of part) await saveAcknowledged(transaction, peer, revision);
      }).catch((error) => {
        // The next request of each host acknowledges again.
        for (const [peer] of due.slice(first)) this.#settled.delete(peer);
        throw error;
      });
    }
  }
}
