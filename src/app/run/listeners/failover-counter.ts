import type { PeerId } from '../../../core/map/model.ts';
import type { Prefix } from '../../../core/net/cidr.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Meter } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';

/** Counts failovers: another connector serves a route, or relays to the network's range. */
export class FailoverCounter implements PassListener {
  readonly #meter: Meter;
  readonly #link: string;
  /** The last peer that had a prefix, even if none has it now. */
  readonly #owners = new Map<Prefix, PeerId>();

  constructor(meter: Meter, link: string) {
    this.#meter = meter;
    this.#link = link;
  }

  /** Counts all prefixes that moved in one pass as one failover. */
  onPass({ evaluation }: Pass): void {
    if (evaluation === null) return;
    const { map } = evaluation.state.membership;
    const ids = new Map(map.peers.map((peer) => [peer.publicKey, peer.id]));
    const watched = new Set([map.cidr, ...map.routes]);
    for (const prefix of this.#owners.keys()) if (!watched.has(prefix)) this.#owners.delete(prefix);
    let isMoved = false;
    for (const { publicKey, allowedIps } of evaluation.desired.config.peers) {
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
