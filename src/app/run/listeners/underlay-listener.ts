import type { Pass } from '../../reconcile/pass.ts';
import type { PassListener } from '../pass-listener.ts';

/** Detects a move to another network: names may resolve differently, connections are dead. */
export class UnderlayListener implements PassListener {
  readonly #onChange: () => void;
  #last: ObservedPaths | null = null;

  /**
   * @param onChange called if subnets, gateways or resolvers differ from the last pass, or the path
   *   to the control plane, which policy rules and other tables may change
   */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  onPass({ evaluation }: Pass): void {
    if (evaluation === null) return;
    const { connected, gateways, resolvers, paths = {} } = evaluation.actual.underlay;
    const before = this.#last;
    const now = { network: JSON.stringify([connected, gateways, resolvers]), paths: new Map(Object.entries(paths)) };
    this.#last = now;
    if (before !== null && isOther(before, now)) this.#onChange();
  }
}

interface ObservedPaths {
  readonly network: string;
  readonly paths: ReadonlyMap<string, string>;
}

/** A new address of the control plane has no earlier path, and does not count. */
function isOther(before: ObservedPaths, now: ObservedPaths): boolean {
  return (
    before.network !== now.network ||
    [...now.paths].some(([address, path]) => (before.paths.get(address) ?? path) !== path)
  );
}
