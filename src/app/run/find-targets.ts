import type { Address } from '../../core/cidr.ts';
import type { Target } from '../lan.ts';
import type { Tools } from '../tools.ts';

/** Milliseconds. A lookup holds a thread for as long as the resolver takes; there is one at a time. */
const lookupDeadline = 10_000;

/** Knows where probe targets are: names are looked up beside the rounds, which a resolver in a dead LAN must not hold up. */
export class TargetFinder {
  readonly #tools: Tools;
  readonly #found = new Map<string, Address | null>();
  #isLooking = false;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  /** The address at which a target was found last: null where its name has none, undefined while nobody knows. */
  find({ address, host }: Target): Address | null | undefined {
    return address ?? this.#found.get(host);
  }

  /** Asks for the names among the targets, unless it does so already. A name that has no address any more keeps its last one. */
  async lookUp(targets: readonly Target[]): Promise<void> {
    const names = new Set(targets.filter(({ address }) => address === null).map(({ host }) => host));
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      for (const name of names) {
        const [first] = await this.#tools.host.resolve(name, lookupDeadline);
        this.#found.set(name, first ?? this.#found.get(name) ?? null);
      }
    } finally {
      this.#isLooking = false;
    }
  }
}
