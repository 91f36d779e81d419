import type { Resolved } from '../../core/names/resolved-names.ts';
import { noUpdate, type StateUpdate } from '../reconcile/state-update.ts';

/** A map update, and the promise of whether a pass applied it. */
interface PendingDelivery {
  readonly update: StateUpdate;
  readonly applied: PromiseWithResolvers<boolean>;
}

/** Collects the input of the next pass in addition to the state on disk, and triggers that pass. */
export class PendingUpdate {
  readonly trigger: (inMs?: number) => void;
  #waiting: PendingDelivery | null = null;
  #taken: PendingDelivery | null = null;
  /** The update that a pass over an unobservable host applied in part. */
  #partial: StateUpdate | null = null;
  #last: StateUpdate = noUpdate;
  #resolved: Resolved | null = null;
  #measured: Pick<StateUpdate, 'failed' | 'pathMtu' | 'silent'> = {};
  #isClosed = false;

  /** @param trigger starts a pass, immediately or after the given milliseconds */
  constructor(trigger: (inMs?: number) => void) {
    this.trigger = trigger;
  }

  /** Adds the newest map, which replaces a waiting one. Resolves to whether a pass applied it. */
  addMap(update: StateUpdate): Promise<boolean> {
    if (this.#isClosed) return Promise.resolve(false);
    const applied = Promise.withResolvers<boolean>();
    this.#waiting = { update, applied };
    this.trigger();
    return applied.promise;
  }

  addResolved(resolved: Resolved): void {
    this.#resolved = resolved;
    this.trigger();
  }

  /** Sets the input of every pass from now on; triggers none. */
  set(measured: Pick<StateUpdate, 'failed' | 'pathMtu' | 'silent'>): void {
    this.#measured = { ...this.#measured, ...measured };
  }

  take(): StateUpdate {
    const update = this.#waiting?.update ?? this.#partial ?? noUpdate;
    this.#last = update;
    const resolved = { ...update.resolved, ...this.#resolved };
    this.#taken = this.#waiting;
    this.#waiting = null;
    this.#resolved = null;
    return { ...update, resolved, ...this.#measured };
  }

  /**
   * Reports to the sender of the map whether the pass applied it.
   *
   * @param isPartial true if the next pass must have the map again: without it, the pass would
   *   restore what this pass removed
   */
  settle(isApplied: boolean, isPartial = false): void {
    this.#partial = isPartial ? this.#last : null;
    this.#taken?.applied.resolve(isApplied);
    this.#taken = null;
  }

  /** Rejects all maps: no pass follows. */
  close(): void {
    this.#isClosed = true;
    for (const delivery of [this.#taken, this.#waiting]) delivery?.applied.resolve(false);
  }
}
