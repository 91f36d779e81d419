import type { PeerId } from '../../../core/map/model.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';

/** Logs the peers whose endpoint is not used, and the reason: once when that begins, changes or ends. */
export class EndpointListener implements PassListener {
  readonly #tools: Pick<Tools, 'log'>;
  readonly #link: string;
  #lost: ReadonlyMap<PeerId, string> = new Map();

  constructor(tools: Pick<Tools, 'log'>, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  onPass({ evaluation }: Pass): void {
    if (evaluation === null) return;
    const before = this.#lost;
    this.#lost = evaluation.desired.lostEndpoints;
    if (before === this.#lost) return;
    const names = new Map(evaluation.state.membership.map.peers.map(({ id, name }) => [id, name]));
    const factsOf = (peer: PeerId) => ({ interface: this.#link, peer: names.get(peer) ?? peer });
    for (const [peer, reason] of this.#lost) {
      if (before.get(peer) === reason) continue;
      this.#tools.log.warn({ ...factsOf(peer), reason }, "a peer's endpoint is not used");
    }
    for (const peer of before.keys()) {
      if (!this.#lost.has(peer)) this.#tools.log.info(factsOf(peer), "a peer's endpoint is used again");
    }
  }
}
