import type { Prefix } from '../../core/cidr.ts';
import type { Joined } from '../../store/state.ts';
import type { Notes } from '../../store/store.ts';
import type { Survey } from '../survey.ts';
import type { Tools } from '../tools.ts';
import { tellWithdrawn, withdrawnBy } from '../withdraw.ts';
import { Once } from './once.ts';

/** What a connector is to have out of service. */
interface Wanted {
  readonly state: Joined;
  readonly withdrawn: readonly Prefix[];
}

/** Sees to it that the control plane holds out of service what this connector cannot or shall not serve, and nothing else. */
export class ServiceWatch {
  readonly #tools: Tools;
  readonly #once: Once;
  #next: Wanted | null = null;
  #isTelling = false;

  constructor(tools: Tools, link: string) {
    this.#tools = tools;
    const trouble = {
      begins: 'the control plane could not be told what is out of service here',
      ends: 'the control plane knows again what is out of service here',
    };
    this.#once = new Once(tools.log, { interface: link }, trouble);
  }

  /**
   * Takes one more look into account. Tells the control plane beside the passes, one word after the other and the newest last; what
   * fails is tried again at the next look.
   *
   * @param notes routes whose LAN does not answer, and whether the packet rules load
   */
  follow({ state }: Survey, notes: Pick<Notes, 'dead' | 'unloaded'>): void {
    if (state.enrollment.type !== 'connector') return;
    this.#next = { state, withdrawn: withdrawnBy(state, notes) };
    if (!this.#isTelling) void this.#tell();
  }

  async #tell(): Promise<void> {
    this.#isTelling = true;
    try {
      for (let wanted = this.#take(); wanted !== null; wanted = this.#take()) {
        this.#once.notice(await tellWithdrawn(this.#tools, wanted.state, wanted.withdrawn));
      }
    } catch (error) {
      this.#once.notice(error);
    } finally {
      this.#isTelling = false;
    }
  }

  #take(): Wanted | null {
    const wanted = this.#next;
    this.#next = null;
    return wanted;
  }
}
