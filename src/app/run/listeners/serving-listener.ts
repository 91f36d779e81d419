import { CpnError } from '../../../core/errors/index.ts';
import { findServing } from '../../lan/serving.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';
import { TransitionLogger } from '../transition-logger.ts';

/** Writes for other programs, such as keepalived, for which routes this connector is in service. */
export class ServingListener implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #transitions: TransitionLogger;

  constructor(tools: Tools, link: string) {
    this.#tools = tools;
    this.#link = link;
    const messages = {
      begins: 'the files in serving/ cannot be written',
      ends: 'the files in serving/ can be written again',
    };
    this.#transitions = new TransitionLogger(tools.log, { interface: link }, messages);
  }

  /** The files stay when the daemon stops: the tunnel stays up, and this host in service. */
  async onPass({ evaluation }: Pass): Promise<void> {
    if (evaluation === null) return;
    const { store } = this.#tools;
    const routes = findServing(evaluation, await store.readNotes(this.#link));
    try {
      await store.writeServing(this.#link, new Map(routes.map(({ route, standby }) => [route, standby === null])));
      this.#transitions.update(null);
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      this.#transitions.update(error);
    }
  }
}
