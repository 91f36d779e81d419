import type { Change } from '../../core/change.ts';
import { findQuarrels, noteRepairs, pauseBefore, type Quarrel, type Repairs } from '../../core/damping.ts';
import type { Tools } from '../tools.ts';

/** Seconds. */
const heldFor = 600;

/** Spaces out the repairs of what somebody undoes again and again, and says who that may be. */
export class DriftWatch {
  readonly #tools: Tools;
  readonly #link: string;
  #repairs: Repairs = new Map();
  #quarrels = 0;
  /** The drift whose repair was let begin last. */
  #begun: readonly Change[] = [];
  /** The drift whose repair was taken back, and until when it is left alone. */
  #heldBack: { readonly drift: string; readonly until: number } | null = null;

  constructor(tools: Tools, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  /** Seconds for which this repair is to be put off; 0 lets it begin. */
  pauseBefore(drift: readonly Change[]): number {
    const now = this.#tools.monotonic();
    const held = this.#heldBack?.drift === nameOf(drift) ? Math.max(0, this.#heldBack.until - now) : 0;
    const pause = Math.max(held, pauseBefore(this.#repairs, drift, now));
    this.#begun = pause === 0 ? drift : [];
    return pause;
  }

  /** Takes note of a repair that was taken back: each try costs the tunnel, and so this very one is left alone for a while. */
  holdBack(): void {
    if (this.#begun.length > 0)
      this.#heldBack = { drift: nameOf(this.#begun), until: this.#tools.monotonic() + heldFor };
    this.#begun = [];
  }

  /** Takes note of a repair that did not last until we looked again: who is quick at undoing it must not escape being noticed. */
  async noteUndone(): Promise<void> {
    await this.note(this.#begun);
  }

  /** Takes note of a repair, or that there was nothing to repair; tells log and notes when the quarrels are others than before. */
  async note(drift: readonly Change[]): Promise<void> {
    const { host, log, monotonic } = this.#tools;
    this.#begun = [];
    this.#repairs = noteRepairs(this.#repairs, drift, monotonic());
    const quarrels = findQuarrels(this.#repairs, monotonic());
    const before = this.#quarrels;
    this.#quarrels = quarrels.length;
    if (quarrels.length === before) return;
    const suspects = quarrels.length > before ? await host.suspects() : [];
    if (quarrels.length > before) {
      const targets = quarrels.map(({ what }) => what);
      log.warn({ interface: this.#link, targets, suspects }, 'drift keeps coming back; repairs are spaced out');
    }
    const troubles = quarrels.map((quarrel) => describe(quarrel, suspects));
    await this.#tools.store.amendNotes(this.#link, { troubles });
  }
}

function nameOf(drift: readonly Change[]): string {
  return JSON.stringify(drift.map(({ action, kind, target }) => [action, kind, target]));
}

function describe({ what, repairs }: Quarrel, suspects: readonly string[]): string {
  const perhaps = suspects.length === 0 ? '' : `; perhaps by ${suspects.join(', ')}`;
  return `${what} was undone ${repairs} times in ten minutes, and repairs are spaced out${perhaps}`;
}
