import type { Pass } from '../../reconcile/pass.ts';
import type { Log } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';

/** Per pass, which may change thousands of peers. */
const mostLogged = 20;

export class PassLogger implements PassListener {
  readonly #log: Log;
  readonly #link: string;

  constructor(log: Log, link: string) {
    this.#log = log;
    this.#link = link;
  }

  onPass({ changes, isDrift }: Pass): void {
    if (changes.length === 0) return;
    const more = changes.length - mostLogged;
    const logged = changes
      .slice(0, mostLogged)
      .map(({ action, kind, target, reason }) => `${action} ${kind} ${target}: ${reason}`);
    const facts = { interface: this.#link, changes: logged, ...(more > 0 && { more }) };
    this.#log.info(facts, isDrift ? 'drift repaired' : 'change applied');
  }
}
