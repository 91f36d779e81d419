import { CpnError } from '../../../core/errors/index.ts';
import type { Address } from '../../../core/net/cidr.ts';
import type { Tools } from '../../tools.ts';

/** Milliseconds between two readings of the interface's counter, which start no process. */
const every = 1_000;
/** Milliseconds between two readings of the destinations, which start one. */
const pause = 2_000;
/** Fewer packets within this many readings are no use of a path. */
const leastPackets = 3;
const readingsTogether = 10;

/** Reports the addresses in the network to which this host sends, while it sends. */
export class DestinationWatcher {
  readonly #tools: Pick<Tools, 'host' | 'sleep' | 'monotonic'>;
  readonly #link: string;
  readonly #onUse: (addresses: readonly Address[]) => void;
  #isFollowing = false;
  #readAt = Number.NEGATIVE_INFINITY;
  #wake = () => {};

  constructor(
    tools: Pick<Tools, 'host' | 'sleep' | 'monotonic'>,
    link: string,
    onUse: (addresses: readonly Address[]) => void,
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
        if (isUsed && (monotonic() - this.#readAt) * 1000 >= pause) {
          this.#readAt = monotonic();
          this.#onUse(await host.readRecentDestinations(this.#link));
        }
      } catch (error) {
        if (!(error instanceof CpnError)) throw error;
      }
      await sleep(every, signal);
    }
  }
}
