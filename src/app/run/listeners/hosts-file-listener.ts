import { HostsFileNotUpdated } from '../../../core/errors/index.ts';
import { explainHosts } from '../../../core/reconcile/plan-hosts.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';
import { TransitionLogger } from '../transition-logger.ts';

/** Logs that the hosts file cannot be changed. */
export class HostsFileListener implements PassListener {
  readonly #link: string;
  readonly #transitions: TransitionLogger;

  constructor(tools: Pick<Tools, 'log'>, link: string) {
    this.#link = link;
    const messages = { begins: 'the hosts file cannot be changed', ends: 'the hosts file can be changed again' };
    this.#transitions = new TransitionLogger(tools.log, { interface: link }, messages);
  }

  onPass({ evaluation }: Pass): void {
    if (evaluation === null) return;
    const problem = explainHosts(evaluation.desired, evaluation.actual);
    this.#transitions.update(problem === null ? null : new HostsFileNotUpdated(this.#link, problem));
  }
}
