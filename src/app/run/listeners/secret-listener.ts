import type { Joined } from '../../../store/state/state.ts';
import type { Pass } from '../../reconcile/pass.ts';
import { isMisreported, ownTag, reportSecret } from '../../report-secret.ts';
import type { ServiceTools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';
import { TransitionLogger } from '../transition-logger.ts';

/** The last successful report. */
interface SecretReport {
  readonly tag: string | null;
  /** The map that lacked the tag; the next one may have it. */
  readonly revision: string | null;
  /** True if the service has no such resource. */
  readonly isUnknown: boolean;
}

/** Reports the tag of the network secret, which other hosts compare with theirs. */
export class SecretListener implements PassListener {
  readonly #tools: ServiceTools;
  readonly #transitions: TransitionLogger;
  #reported: SecretReport | null = null;
  #isSending = false;

  constructor(tools: ServiceTools, link: string) {
    this.#tools = tools;
    const messages = {
      begins: 'the tag of the network secret could not be reported',
      ends: 'the tag of the network secret is reported',
    };
    this.#transitions = new TransitionLogger(tools.log, { interface: link }, messages);
  }

  /** Sends without delaying the pass; the next pass repeats a report that fails. */
  onPass({ evaluation }: Pass): void {
    if (evaluation === null || this.#isSending) return;
    if (!isMisreported(evaluation.state)) this.#transitions.update(null);
    else if (!this.#isReported(evaluation.state)) void this.#send(evaluation.state);
  }

  #isReported({ membership, networkSecret }: Joined): boolean {
    const reported = this.#reported;
    if (reported === null || reported.tag !== ownTag({ networkSecret })) return false;
    return reported.isUnknown || reported.revision === membership.map.revision;
  }

  async #send(state: Joined): Promise<void> {
    this.#isSending = true;
    try {
      const outcome = await reportSecret(this.#tools, state);
      const isUnknown = outcome === 'unknown';
      this.#transitions.update(isUnknown ? null : outcome);
      if (!isUnknown && outcome !== null) return;
      this.#reported = { tag: ownTag(state), revision: state.membership.map.revision, isUnknown };
    } catch (error) {
      this.#transitions.update(error);
    } finally {
      this.#isSending = false;
    }
  }
}
