import { CpnError, ForwardingDropped } from '../../core/errors.ts';
import { findDrops } from '../forward-drops.ts';
import type { Survey } from '../survey.ts';
import type { Tools } from '../tools.ts';
import { Once } from './once.ts';

/** An interval is a fifth shorter at times, and then is over all the same. */
const leeway = 0.75;

/**
 * Looks whether somebody else's packet rules drop what a connector forwards, and tells the log when that begins and ends. It
 * costs a process, so that it looks once an interval, and when packet rules changed.
 */
export class ForwardWatch {
  readonly #tools: Tools;
  /** Seconds. */
  readonly #rest: number;
  readonly #dropped: Once;
  readonly #unread: Once;
  #due = 0;

  /** @param interval seconds between two looks that nothing else asks for, more or less */
  constructor(tools: Tools, link: string, interval: number) {
    this.#tools = tools;
    this.#rest = interval * leeway;
    const once = (begins: string, ends: string) => new Once(tools.log, { interface: link }, { begins, ends });
    this.#dropped = once('packets to be forwarded are dropped', 'nobody drops packets to be forwarded any more');
    this.#unread = once('the packet rules cannot be read', 'the packet rules can be read again');
  }

  /** Packet rules changed: the next pass looks, whenever the last one did. */
  expect(): void {
    this.#due = 0;
  }

  /** Looks, where it is time to. A network that was taken down, null, has nothing to be dropped. */
  async note(seen: Survey | null): Promise<void> {
    const now = this.#tools.monotonic();
    if (seen !== null && now < this.#due) return;
    this.#due = now + this.#rest;
    try {
      const drops = seen === null ? [] : await findDrops(this.#tools, seen);
      this.#unread.notice(null);
      this.#dropped.notice(drops.length === 0 ? null : new ForwardingDropped(drops));
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      this.#unread.notice(error);
    }
  }
}
