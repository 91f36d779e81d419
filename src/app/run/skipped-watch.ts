import type { NetworkMap, SkippedPeer } from '../../core/model.ts';
import { describeSkipped } from '../../core/skipped-peers.ts';
import type { Joined } from '../../store/state.ts';
import type { Tools } from '../tools.ts';

/** Of one map; `cpn status` counts the others. */
const mostLogged = 20;

/** Logs which peers of the network cannot be used, each once while that lasts. */
export class SkippedWatch {
  readonly #tools: Tools;
  readonly #link: string;
  #last: NetworkMap['skipped'];
  #logged: ReadonlySet<string> = new Set();

  constructor(tools: Tools, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  /** Takes one more look into account. */
  follow({ membership: { map } }: Joined): void {
    if (map.skipped === this.#last) return;
    this.#last = map.skipped;
    const logged = new Set<string>();
    for (const peer of (map.skipped ?? []).slice(0, mostLogged)) {
      const said = describeSkipped(peer);
      logged.add(said);
      if (!this.#logged.has(said)) this.#log(peer);
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
