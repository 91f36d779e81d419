import type { Pass } from '../../reconcile/pass.ts';
import type { PassListener } from '../pass-listener.ts';

/** Detects that the host is in another network: names may resolve differently there, and connections are dead. */
export class UnderlayListener implements PassListener {
  readonly #onChange: () => void;
  #last: string | null = null;

  /** @param onChange called when subnets, gateways or resolvers of the host differ from the last pass */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  onPass({ evaluation }: Pass): void {
    if (evaluation === null) return;
    const { connected, gateways, resolvers } = evaluation.actual.surroundings;
    const before = this.#last;
    this.#last = JSON.stringify([connected, gateways, resolvers]);
    if (before !== null && before !== this.#last) this.#onChange();
  }
}
