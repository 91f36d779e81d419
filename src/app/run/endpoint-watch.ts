import type { PeerId } from '../../core/model.ts';
import type { Survey } from '../survey.ts';
import type { Tools } from '../tools.ts';

/** Logs which peers' endpoints are not used, and why: once when that begins, changes or ends. */
export class EndpointWatch {
  readonly #tools: Tools;
  readonly #link: string;
  #lost: ReadonlyMap<PeerId, string> = new Map();

  constructor(tools: Tools, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  /** Takes one more pass into account. */
  follow({ desired, state }: Survey): void {
    const before = this.#lost;
    this.#lost = desired.lostEndpoints;
    if (before === this.#lost) return;
    const names = new Map(state.membership.map.peers.map(({ id, name }) => [id, name]));
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
