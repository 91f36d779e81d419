import type { Prefix } from '../../core/cidr.ts';
import type { PeerId } from '../../core/model.ts';
import type { Meter } from '../meter.ts';
import type { Survey } from '../survey.ts';

/** Counts how often another connector took over: routes, or the relaying of the network's range. */
export class TakeoverWatch {
  readonly #meter: Meter;
  readonly #link: string;
  /** Who had a prefix last, be it that nobody has it now. */
  readonly #owners = new Map<Prefix, PeerId>();

  constructor(meter: Meter, link: string) {
    this.#meter = meter;
    this.#link = link;
  }

  /** Takes one more look into account; all that went to another at once is one takeover. */
  note({ state, desired }: Survey): void {
    const { map } = state.membership;
    const ids = new Map(map.peers.map((peer) => [peer.publicKey, peer.id]));
    const watched = new Set([map.cidr, ...map.routes]);
    for (const prefix of this.#owners.keys()) if (!watched.has(prefix)) this.#owners.delete(prefix);
    let isMoved = false;
    for (const { publicKey, allowedIps } of desired.config.peers) {
      const owner = ids.get(publicKey);
      if (owner === undefined) continue;
      for (const prefix of allowedIps.filter((each) => watched.has(each))) {
        isMoved ||= (this.#owners.get(prefix) ?? owner) !== owner;
        this.#owners.set(prefix, owner);
      }
    }
    if (isMoved) this.#meter.failedOver(this.#link);
  }
}
