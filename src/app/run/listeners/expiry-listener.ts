import { findExpiry, findExpiryWarning } from '../../../core/map/expiry.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';

/** Logs that this host expires within days, and that it expired, each once for one expiry time. */
export class ExpiryListener implements PassListener {
  readonly #tools: Pick<Tools, 'now' | 'log'>;
  readonly #link: string;
  #logged = '';

  constructor(tools: Pick<Tools, 'now' | 'log'>, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  onPass({ evaluation }: Pass): void {
    if (evaluation === null) return;
    const ending = findExpiryWarning(evaluation.state, this.#tools.now());
    const expires_at = new Date(findExpiry(evaluation.state) ?? 0).toISOString();
    const name = ending === null ? '' : `${ending.isOver} ${expires_at}`;
    if (name === this.#logged) return;
    this.#logged = name;
    if (ending !== null)
      this.#tools.log.warn({ interface: this.#link, expires_at }, `${ending.found}; ${ending.remedy}`);
  }
}
