import { type EndpointHistory, findAlternating, trackEndpoints } from '../../../core/health/alternating-endpoints.ts';
import { findClones } from '../../problems/find-problems.ts';
import type { Pass } from '../../reconcile/pass.ts';
import { secondsNow, type Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';
import { ProblemLog } from '../transition-logger.ts';

/** Notes and logs the peers whose packets come from two endpoints in turn. */
export class CloneListener implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #log: ProblemLog;
  #history: EndpointHistory = new Map();
  #noted = '{}';

  constructor(tools: Tools, link: string) {
    this.#tools = tools;
    this.#link = link;
    this.#log = new ProblemLog(tools.log);
  }

  async onPass({ evaluation }: Pass): Promise<void> {
    if (evaluation === null) return;
    const { state, actual } = evaluation;
    const at = this.#tools.monotonic();
    this.#history = trackEndpoints(this.#history, actual.device?.peers ?? [], secondsNow(this.#tools), at);
    const alternating = Object.fromEntries(findAlternating(this.#history, at));
    const noted = JSON.stringify(alternating);
    if (noted === this.#noted) return;
    this.#noted = noted;
    this.#log.update(findClones(state, { sync: {}, alternating }));
    await this.#tools.store.amendNotes(this.#link, { alternating });
  }
}
