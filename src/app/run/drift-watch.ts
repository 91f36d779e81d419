import type { Change } from '../../core/change.ts';
import { findQuarrels, noteRepairs, pauseBefore, type Repairs } from '../../core/damping.ts';
import type { Tools } from '../tools.ts';

/** Spaces out the repairs of what somebody undoes again and again, and says who that may be. */
export class DriftWatch {
  readonly #tools: Tools;
  readonly #link: string;
  #repairs: Repairs = new Map();
  #quarrels = 0;

  constructor(tools: Tools, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  /** Seconds for which this repair is to be put off; 0 for none. */
  pauseBefore(drift: readonly Change[]): number {
    return pauseBefore(this.#repairs, drift, this.#tools.monotonic());
  }

  /** Takes note of a repair. Returns what a person should know of it; null where that is no other thing than before. */
  async note(drift: readonly Change[]): Promise<readonly string[] | null> {
    const tools = this.#tools;
    this.#repairs = noteRepairs(this.#repairs, drift, tools.monotonic());
    const quarrels = findQuarrels(this.#repairs, tools.monotonic());
    const before = this.#quarrels;
    this.#quarrels = quarrels.length;
    if (quarrels.length === before) return null;
    if (quarrels.length < before) return this.#describe(quarrels, []);
    const suspects = await tools.host.suspects();
    const targets = quarrels.map(({ what }) => what);
    tools.log.warn({ interface: this.#link, targets, suspects }, 'drift keeps coming back; repairs are spaced out');
    return this.#describe(quarrels, suspects);
  }

  #describe(quarrels: ReturnType<typeof findQuarrels>, suspects: readonly string[]): string[] {
    const perhaps = suspects.length === 0 ? '' : `; perhaps by ${suspects.join(', ')}`;
    return quarrels.map(
      ({ what, repairs }) => `${what} was undone ${repairs} times in ten minutes, and repairs are spaced out${perhaps}`,
    );
  }
}
