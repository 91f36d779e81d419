import { CpnError } from '../../../core/errors/index.ts';
import { findName, identifyRefused, type RefusedConnection } from '../../../core/rules/refused.ts';
import type { Joined } from '../../../store/state/state.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';
import { TransitionLogger } from '../transition-logger.ts';

/** Seconds between two readings, which cost a process. */
const pause = 60;
/** The most connections in the log for one reading. The others are counted. */
const mostLogged = 10;

/**
 * Logs the connections that the rules of a closed network refused on this host, and reports them. A
 * connection counts again when it was not refused for five minutes.
 */
export class RefusalListener implements PassListener {
  readonly #tools: Pick<Tools, 'host' | 'log' | 'monotonic'>;
  readonly #link: string;
  readonly #report: (refused: readonly RefusedConnection[]) => void;
  readonly #unread: TransitionLogger;
  /** The connections of the last reading. */
  #known: ReadonlySet<string> = new Set();
  #due = 0;

  /** @param report receives new connections, the latest first */
  constructor(
    tools: Pick<Tools, 'host' | 'log' | 'monotonic'>,
    link: string,
    report: (refused: readonly RefusedConnection[]) => void,
  ) {
    this.#tools = tools;
    this.#link = link;
    this.#report = report;
    const messages = { begins: 'refused packets cannot be read', ends: 'refused packets can be read again' };
    this.#unread = new TransitionLogger(tools.log, { interface: link }, messages);
  }

  async onPass({ evaluation }: Pass): Promise<void> {
    const { host, monotonic } = this.#tools;
    if (evaluation?.desired.firewall?.access === undefined || !host.readRefused || monotonic() < this.#due) return;
    this.#due = monotonic() + pause;
    try {
      const refused = await host.readRefused(this.#link);
      this.#unread.update(null);
      this.#note(refused?.latest ?? [], evaluation.state);
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      this.#unread.update(error);
    }
  }

  #note(latest: readonly RefusedConnection[], { membership }: Joined): void {
    const found = latest.filter((each) => !this.#known.has(identifyRefused(each)));
    this.#known = new Set(latest.map(identifyRefused));
    if (found.length === 0) return;
    const { log } = this.#tools;
    const { peers } = membership.map;
    for (const { from, to, protocol, port } of found.slice(0, mostLogged)) {
      const names = { from_peer: findName(from, peers), to_peer: findName(to, peers) };
      const facts = { interface: this.#link, from, to, protocol, port, ...names };
      log.info(facts, 'the rules of the network refused a connection');
    }
    const more = found.length - mostLogged;
    if (more > 0) log.info({ interface: this.#link, more }, 'the rules of the network refused more connections');
    this.#report(found);
  }
}
