import { CpnError } from '../../../core/errors/index.ts';
import type { Address } from '../../../core/net/cidr.ts';
import type { Tools } from '../../tools.ts';

/** Milliseconds between two readings of the interface's counter, which start no process. */
const every = 500;
/**
 * Milliseconds between two readings of the destinations, which start a process. They double while
 * the readings lead to no new path.
 */
const pauses = { first: 500, last: 1_000 } as const;
/** Fewer packets within this many readings are no use of a path. */
const leastPackets = 3;
const readingsTogether = 20;

/** Reports the addresses in the network to which this host sends, while it sends. */
export class DestinationWatcher {
  readonly #tools: Pick<Tools, 'host' | 'sleep' | 'monotonic'>;
  readonly #link: string;
  readonly #onUse: (addresses: readonly Address[]) => boolean;
  #isFollowing = false;
  #readAt = Number.NEGATIVE_INFINITY;
  /** Milliseconds. */
  #pause: number = pauses.first;
  #wake = () => {};

  /** @param onUse returns true if a path to one of the addresses is new */
  constructor(
    tools: Pick<Tools, 'host' | 'sleep' | 'monotonic'>,
    link: string,
    onUse: (addresses: readonly Address[]) => boolean,
  ) {
    this.#tools = tools;
    this.#link = link;
    this.#onUse = onUse;
  }

  follow(isFollowing: boolean): void {
    this.#isFollowing = isFollowing;
    if (isFollowing) this.#wake();
  }

  /** Reads the destinations as soon as packets leave. */
  hurry(): void {
    this.#readAt = Number.NEGATIVE_INFINITY;
    this.#pause = pauses.first;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { host, sleep, monotonic } = this.#tools;
    if (!host.countSent || !host.readRecentDestinations) return;
    signal.addEventListener('abort', () => this.#wake());
    let before: number | null = null;
    let reading = 0;
    while (!signal.aborted) {
      if (!this.#isFollowing) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      try {
        const sent = await host.countSent(this.#link);
        const isUsed = sent !== null && before !== null && sent - before >= leastPackets;
        reading = isUsed ? 0 : (reading + 1) % readingsTogether;
        if (reading === 0 || before === null || sent === null || sent < before) before = sent;
        // A timer may end a millisecond early.
        if (isUsed && (monotonic() - this.#readAt) * 1000 >= this.#pause - every / 2) {
          this.#readAt = monotonic();
          const isNew = this.#onUse(await host.readRecentDestinations(this.#link));
          this.#pause = isNew ? pauses.first : Math.min(2 * this.#pause, pauses.last);
        }
      } catch (error) {
        if (!(error instanceof CpnError)) throw error;
      }
      await sleep(every, signal);
    }
  }
}
