import type { Change } from '../../core/change.ts';
import {
  findQuarrels,
  isProtective,
  noteRepairs,
  pauseBefore,
  type Quarrel,
  type Repairs,
} from '../../core/damping.ts';
import type { Tools } from '../tools.ts';

/** Seconds for which a repair that was rolled back is not tried again. */
const heldFor = 600;

/** Spaces out the repairs of what somebody undoes again and again, and says who that may be. */
export class DriftWatch {
  readonly #tools: Tools;
  readonly #link: string;
  #repairs: Repairs = new Map();
  #quarrels: readonly string[] = [];
  /** The drift whose repair was let begin last. */
  #begun: readonly Change[] = [];
  /** Drifts whose repair was rolled back, and until when it is not tried again. */
  readonly #heldBack = new Map<string, number>();
  /** Why the present drift is not repaired. */
  #reason: string | null = null;

  constructor(tools: Tools, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  /** Seconds for which this repair is to be put off; 0 lets it begin. */
  pauseBefore(drift: readonly Change[]): number {
    const now = this.#tools.monotonic();
    const heldUntil = drift.some(isProtective) ? undefined : this.#heldBack.get(nameOf(drift));
    const until = heldUntil ?? now;
    const pause = Math.max(0, until - now, pauseBefore(this.#repairs, drift, now));
    this.#begun = pause === 0 ? drift : [];
    return pause;
  }

  /** Records a repair that was rolled back. Each try interrupts the tunnel, so the same repair is not tried again for a while. */
  async holdBack(reason: string): Promise<void> {
    if (this.#begun.length === 0) return;
    this.#heldBack.set(nameOf(this.#begun), this.#tools.monotonic() + heldFor);
    this.#begun = [];
    await this.#tell(this.#quarrels, reason);
  }

  /** Takes note of a repair that did not last until we looked again: who is quick at undoing it must not escape being noticed. */
  async noteUndone(): Promise<void> {
    await this.note(this.#begun);
  }

  /**
   * Takes note of a repair, or that there was nothing to repair; tells log and notes when the quarrels are others than before.
   *
   * @param isPostponed whether there is drift that was left for later
   */
  async note(drift: readonly Change[], isPostponed = false): Promise<void> {
    const { host, log, monotonic } = this.#tools;
    this.#begun = [];
    this.#repairs = noteRepairs(this.#repairs, drift, monotonic());
    const quarrels = findQuarrels(this.#repairs, monotonic());
    const before = this.#quarrels.length;
    const reason = isPostponed ? this.#reason : null;
    if (quarrels.length === before) return this.#tell(this.#quarrels, reason);
    const suspects = quarrels.length > before ? await host.suspects() : [];
    if (quarrels.length > before) {
      const targets = quarrels.map(({ what }) => what);
      log.warn({ interface: this.#link, targets, suspects }, 'drift keeps coming back');
    }
    await this.#tell(
      quarrels.map((quarrel) => describe(quarrel, suspects)),
      reason,
    );
  }

  /** Writes the notes where they change. */
  async #tell(quarrels: readonly string[], reason: string | null): Promise<void> {
    if (quarrels === this.#quarrels && reason === this.#reason) return;
    this.#quarrels = quarrels;
    this.#reason = reason;
    await this.#tools.store.amendNotes(this.#link, { troubles: [...quarrels, ...(reason === null ? [] : [reason])] });
  }
}

function nameOf(drift: readonly Change[]): string {
  return JSON.stringify(drift.map(({ action, kind, target }) => [action, kind, target]));
}

function describe({ what, repairs, pause }: Quarrel, suspects: readonly string[]): string {
  const perhaps = suspects.length === 0 ? '' : `; perhaps by ${suspects.join(', ')}`;
  const then = pause === 0 ? 'is repaired at once each time' : 'its repairs are spaced out';
  return `${what} was repaired ${repairs} times in ten minutes, and ${then}${perhaps}`;
}
