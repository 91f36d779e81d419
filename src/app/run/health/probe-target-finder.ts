import type { Address } from '../../../core/net/cidr.ts';
import type { Target } from '../../drain/lan.ts';
import type { Tools } from '../../tools.ts';

/** Milliseconds. A lookup holds a thread for as long as the resolver takes; there is one at a time. */
const lookupDeadline = 10_000;

/** Resolves the names of probe targets apart from the probes: a resolver in a dead LAN must not delay those. */
export class ProbeTargetFinder {
  readonly #tools: Tools;
  readonly #found = new Map<string, Address | null>();
  #isBusy = false;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  /** The last address of a target: null if its name has none, undefined before the first lookup. */
  find({ address, host }: Target): Address | null | undefined {
    return address ?? this.#found.get(host);
  }

  /** Resolves the names among the targets, one call at a time. A name without an address keeps its last one. */
  async lookUp(targets: readonly Target[]): Promise<void> {
    const names = new Set(targets.filter(({ address }) => address === null).map(({ host }) => host));
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      for (const name of names) {
        const [first] = await this.#tools.host.resolve(name, lookupDeadline);
        this.#found.set(name, first ?? this.#found.get(name) ?? null);
      }
    } finally {
      this.#isBusy = false;
    }
  }
}
