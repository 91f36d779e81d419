import { type EndpointHistory, findAlternating, trackEndpoints } from '../../../core/health/alternating-endpoints.ts';
import type { Pass } from '../../reconcile/pass.ts';
import { secondsNow, type Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';

/** Notes and logs the peers whose packets come from two endpoints in turn. */
export class CloneListener implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  #history: EndpointHistory = new Map();
  #noted = '{}';

  constructor(tools: Tools, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  async onPass({ evaluation }: Pass): Promise<void> {
    if (evaluation === null) return;
    const { state, actual } = evaluation;
    const at = this.#tools.monotonic();
    this.#history = trackEndpoints(this.#history, actual.device?.peers ?? [], secondsNow(this.#tools), at);
    const found = findAlternating(this.#history, at);
    const alternating = Object.fromEntries(found);
    const noted = JSON.stringify(alternating);
    if (noted === this.#noted) return;
    const before: Readonly<Record<string, unknown>> = JSON.parse(this.#noted);
    this.#noted = noted;
    for (const { publicKey, name } of state.membership.map.peers) {
      const endpoints = found.get(publicKey);
      if (endpoints === undefined || publicKey in before) continue;
      this.#tools.log.warn(
        { interface: this.#link, peer: name, endpoints },
        'packets of a peer come from two endpoints in turn; two hosts may have its identity',
      );
    }
    await this.#tools.store.amendNotes(this.#link, { alternating });
  }
}
