import type { Surroundings } from '../../core/actual.ts';

/** Notices that the host is in another network than before: names may lead elsewhere there, and connections are dead. */
export class PlaceWatch {
  #place: string | null = null;

  /** True when the host's own subnets, gateways or resolvers are others than at the last look; never at the first. */
  hasChanged({ connected, gateways, resolvers }: Surroundings): boolean {
    const before = this.#place;
    this.#place = JSON.stringify([connected, gateways, resolvers]);
    return before !== null && before !== this.#place;
  }
}
