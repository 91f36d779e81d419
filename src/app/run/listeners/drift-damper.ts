import { catalogue } from '../../../core/problems/problem.ts';
import type { Change } from '../../../core/reconcile/change.ts';
import {
  type Aimed,
  findRecurringDrift,
  haveSameAim,
  isProtective,
  noteRepairs,
  pauseBefore,
  type RecurringDrift,
  type Repairs,
} from '../../../core/reconcile/drift-damping.ts';
import type { Pass } from '../../reconcile/pass.ts';
import type { Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';

/** Seconds for which a repair that was rolled back is not tried again. */
const heldFor = 600;

/** Changes, and the desired state that they lead to. */
interface PlannedChanges extends Aimed {
  readonly changes: readonly Change[];
}

/**
 * Spaces out the repairs of drift that recurs, and logs which process may cause it. A change that
 * follows from the network or the underlay is no repair.
 */
export class DriftDamper implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  #repairs: Repairs = new Map();
  #recurring: readonly string[] = [];
  /** The last desired state. */
  #last: Aimed | null = null;
  /** The last allowed repair. */
  #begun: PlannedChanges | null = null;
  /** Rolled-back repairs, by drift, with the end of their pause. */
  readonly #heldBack = new Map<string, number>();
  /** Why the drift is not repaired; null if it is. */
  #reason: string | null = null;

  constructor(tools: Tools, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  /** Seconds to postpone this repair; 0 allows it now. */
  pauseBefore(planned: PlannedChanges): number {
    const drift = planned.changes;
    const now = this.#tools.monotonic();
    const heldUntil = drift.some(isProtective) ? undefined : this.#heldBack.get(nameOf(drift));
    const until = heldUntil ?? now;
    const spacing = this.#isRepair(planned) ? pauseBefore(this.#repairs, drift, now) : 0;
    const pause = Math.max(0, until - now, spacing);
    this.#begun = pause === 0 ? planned : null;
    return pause;
  }

  #isRepair(aimed: Aimed): boolean {
    return this.#last === null || haveSameAim(this.#last, aimed);
  }

  /** Records a repair that was rolled back, and postpones it: each try interrupts the tunnel. */
  async holdBack(reason: string): Promise<void> {
    if (this.#begun === null) return;
    this.#heldBack.set(nameOf(this.#begun.changes), this.#tools.monotonic() + heldFor);
    this.#begun = null;
    await this.#save(this.#recurring, reason);
  }

  /** Records a repair that was undone before the pass verified it: such drift counts too. */
  async noteUndone(): Promise<void> {
    if (this.#begun !== null) await this.#note(this.#begun.changes, this.#begun, false);
  }

  async onPass({ evaluation, changes, isDrift }: Pass): Promise<void> {
    const isPostponed = evaluation !== null && changes.length < evaluation.changes.length;
    await this.#note(isDrift ? changes : [], evaluation, isPostponed);
  }

  /**
   * Records a repair, or that there was none. Logs and saves a change of the recurring drift.
   *
   * @param aimed the desired state of the pass; null for a network that is down
   * @param isPostponed true if drift remains for a later pass
   */
  async #note(drift: readonly Change[], aimed: Aimed | null, isPostponed: boolean): Promise<void> {
    const { host, log, monotonic } = this.#tools;
    this.#begun = null;
    const isRepair = drift.length > 0 && aimed !== null && this.#isRepair(aimed);
    this.#last = aimed;
    this.#repairs = noteRepairs(this.#repairs, isRepair ? drift : [], monotonic());
    const recurring = findRecurringDrift(this.#repairs, monotonic());
    const before = this.#recurring.length;
    const reason = isPostponed ? this.#reason : null;
    if (recurring.length === before) return this.#save(this.#recurring, reason);
    const suspects = recurring.length > before ? ((await host.conflictingProcesses?.()) ?? []) : [];
    if (recurring.length > before) {
      const targets = recurring.map(({ what }) => what);
      log.warn({ interface: this.#link, targets, suspects }, catalogue['repair-postponed'].title);
    }
    await this.#save(
      recurring.map((each) => describe(each, suspects)),
      reason,
    );
  }

  async #save(recurring: readonly string[], reason: string | null): Promise<void> {
    if (recurring === this.#recurring && reason === this.#reason) return;
    this.#recurring = recurring;
    this.#reason = reason;
    await this.#tools.store.amendNotes(this.#link, { troubles: [...recurring, ...(reason === null ? [] : [reason])] });
  }
}

function nameOf(drift: readonly Change[]): string {
  return JSON.stringify(drift.map(({ action, kind, target }) => [action, kind, target]));
}

function describe({ what, repairs, pause }: RecurringDrift, suspects: readonly string[]): string {
  const perhaps = suspects.length === 0 ? '' : `; perhaps by ${suspects.join(', ')}`;
  const then = pause === 0 ? 'is repaired at once each time' : 'further repairs are delayed';
  return `${what} was repaired ${repairs} times in ten minutes, and ${then}${perhaps}`;
}
