import type { Prefix } from '../../../core/net/cidr.ts';
import type { Joined } from '../../../store/state/state.ts';
import { reportMasquerading, reportWithdrawn, withdrawnBy } from '../../lan/withdraw.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { ServiceTools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';
import { TransitionLogger } from '../transition-logger.ts';

interface ServiceReport {
  readonly state: Joined;
  readonly withdrawn: readonly Prefix[];
}

/**
 * Reports routes out of service, of a connector that is drained or without a LAN or packet rules,
 * and whether it masquerades.
 */
export class ServiceListener implements PassListener {
  readonly #tools: ServiceTools;
  readonly #link: string;
  readonly #transitions: TransitionLogger;
  #next: ServiceReport | null = null;
  #isSending = false;

  constructor(tools: ServiceTools, link: string) {
    this.#tools = tools;
    this.#link = link;
    const messages = {
      begins: 'routes out of service could not be reported',
      ends: 'routes out of service are reported again',
    };
    this.#transitions = new TransitionLogger(tools.log, { interface: link }, messages);
  }

  /** Sends without delaying the pass, one by one, newest last; the next pass repeats a failure. */
  async onPass({ evaluation }: Pass): Promise<void> {
    if (evaluation?.state.enrollment.type !== 'connector') return;
    const { state } = evaluation;
    this.#next = { state, withdrawn: withdrawnBy(state, await this.#tools.store.readNotes(this.#link)) };
    if (!this.#isSending) void this.#send();
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    try {
      for (let report = this.#take(); report !== null; report = this.#take()) {
        const error = await reportWithdrawn(this.#tools, report.state, report.withdrawn);
        this.#transitions.update(error ?? (await reportMasquerading(this.#tools, report.state)));
      }
    } catch (error) {
      this.#transitions.update(error);
    } finally {
      this.#isSending = false;
    }
  }

  #take(): ServiceReport | null {
    const report = this.#next;
    this.#next = null;
    return report;
  }
}
