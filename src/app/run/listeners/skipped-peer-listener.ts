import type { NetworkMap, SkippedPeer } from '../../../core/map/model.ts';
import { describeSkipped } from '../../../core/map/skipped-peers.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';

/** Of one map; `cpn status` counts the others. */
const mostLogged = 20;

/** Logs the peers of the network that cannot be used, each once while that lasts. */
export class SkippedPeerListener implements PassListener {
  readonly #tools: Pick<Tools, 'log'>;
  readonly #link: string;
  #last: NetworkMap['skipped'];
  #logged: ReadonlySet<string> = new Set();

  constructor(tools: Pick<Tools, 'log'>, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  onPass({ evaluation }: Pass): void {
    if (evaluation === null) return;
    const { skipped } = evaluation.state.membership.map;
    if (skipped === this.#last) return;
    this.#last = skipped;
    const logged = new Set<string>();
    for (const peer of (skipped ?? []).slice(0, mostLogged)) {
      const description = describeSkipped(peer);
      logged.add(description);
      if (!this.#logged.has(description)) this.#log(peer);
    }
    this.#logged = logged;
  }

  #log({ id, name, address, reason }: SkippedPeer): void {
    this.#tools.log.warn(
      { interface: this.#link, peer: id, name, address, reason },
      'a peer that cannot be used is skipped',
    );
  }
}
