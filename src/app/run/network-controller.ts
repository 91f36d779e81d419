import { CpnError, HostUnread } from '../../core/errors/index.ts';
import { sameData } from '../../core/util/same-data.ts';
import type { HostEvent } from '../../host/host.ts';
import type { State } from '../../store/state/state.ts';
import type { Pass } from '../reconcile/pass.ts';
import type { Tools } from '../tools.ts';
import { createListeners } from './create-listeners.ts';
import { DriftDamper } from './listeners/drift-damper.ts';
import { LoopHealth, type LoopStatus } from './loop-health.ts';
import type { PassListener, ResetCause } from './pass-listener.ts';
import { type NextPass, PassScheduler } from './pass-scheduler.ts';
import { PendingUpdate } from './pending-update.ts';
import { reconcile } from './reconcile.ts';
import { TransitionLogger } from './transition-logger.ts';

export interface ControllerOptions {
  /** Seconds between two passes without another trigger, varied by up to a fifth. */
  readonly interval: number;
  /** Milliseconds within which a change that could cut the host off is confirmed, or reverted. */
  readonly confirmMs: number;
}

/** Reconciles one network, one pass at a time, and runs the listeners of these passes. */
export class NetworkController {
  readonly link: string;
  readonly #tools: Tools;
  readonly #options: ControllerOptions;
  readonly #scheduler: PassScheduler;
  readonly #update: PendingUpdate;
  readonly #damper: DriftDamper;
  readonly #listeners: readonly PassListener[];
  readonly #transitions: TransitionLogger;
  readonly #health: LoopHealth;
  readonly #onPass: () => void;
  /** The options of the last pass; null before the first. */
  #passed: State['options'] | null = null;

  constructor(tools: Tools, link: string, options: ControllerOptions, onPass: () => void = () => {}) {
    this.link = link;
    this.#tools = tools;
    this.#options = options;
    this.#scheduler = new PassScheduler(options.interval);
    this.#update = new PendingUpdate((inMs) => this.#scheduler.trigger(inMs));
    this.#damper = new DriftDamper(tools, link);
    const reset = (cause: ResetCause) => this.#reset(cause);
    const startOver = () => this.#startOver();
    const context = { tools, link, ...options, update: this.#update, damper: this.#damper };
    this.#listeners = createListeners({ ...context, reset, startOver });
    const messages = { begins: 'reconciliation failed', ends: 'reconciliation succeeds again' };
    this.#transitions = new TransitionLogger(tools.log, { interface: link }, messages);
    this.#health = new LoopHealth(link, tools.monotonic);
    this.#onPass = onPass;
  }

  /** Runs until `signal` aborts, or until the network is no longer joined. */
  async run(signal: AbortSignal): Promise<void> {
    const left = new AbortController();
    const ended = AbortSignal.any([signal, left.signal]);
    this.#tools.store.watch(this.link, ended, () => void this.#onStateChange());
    const running = this.#listeners.map((listener) => listener.run?.(ended));
    this.#scheduler.trigger();
    for (;;) {
      await this.#scheduler.next(ended);
      if (ended.aborted) break;
      this.#health.begin();
      const context = { tools: this.#tools, link: this.link, confirmMs: this.#options.confirmMs, damper: this.#damper };
      const result = await reconcile(context, this.#update.take(), ended);
      if (result === null) {
        // The scheduler then clears its timer.
        left.abort();
        continue;
      }
      this.#passed = result.pass?.evaluation?.state.options ?? this.#passed;
      this.#schedule(result);
      const isApplied = result.pass !== null && (await this.#notify(result.pass));
      this.#update.settle(isApplied, result.error instanceof HostUnread);
      this.#health.end();
      this.#onPass();
    }
    this.#update.close();
    await Promise.all(running);
    for (const listener of this.#listeners) await listener.onEnd?.();
  }

  get status(): LoopStatus {
    return this.#health.status;
  }

  /** True if a pass does not end, or if the next one is overdue. */
  get isStuck(): boolean {
    return this.#health.isStuck(1.2 * this.#options.interval);
  }

  onEvent(event: HostEvent): void {
    const areUrgent = this.#listeners.map((listener) => listener.onEvent?.(event) === true);
    const isOwn = event.link === null || event.link === this.link;
    this.#scheduler.triggerByEvent(isOwn || areUrgent.includes(true));
  }

  /** Resets after a sleep or a user's reload: observations from outside may be outdated. */
  reset(): void {
    this.#reset('wake');
  }

  async #onStateChange(): Promise<void> {
    this.#scheduler.triggerByStateChange();
    // The next pass reports an unreadable state.
    const state = await this.#tools.store.read(this.link).catch(() => undefined);
    // No host event may follow after a pass during "cpn leave", which finds the network only down,
    // or after a change of an option that only the daemon acts on.
    const hasOtherOptions = state !== null && state !== undefined && !this.#hasOptions(state);
    if (state === null || hasOtherOptions) this.#scheduler.trigger();
  }

  #hasOptions({ options }: Pick<State, 'options'>): boolean {
    return this.#passed === null || sameData(this.#passed, options);
  }

  #reset(cause: ResetCause): void {
    for (const listener of this.#listeners) listener.reset?.(cause);
    this.#startOver();
  }

  /** The daemon is not ready before the pass that follows. */
  #startOver(): void {
    this.#health.startOver();
    this.#scheduler.trigger();
  }

  #schedule(next: NextPass): void {
    this.#scheduler.schedule(next);
    if (next.error !== null) {
      this.#health.fail(next.error);
      this.#transitions.update(next.error);
    } else if (next.requeueAfter === null) {
      this.#health.heal();
      this.#transitions.update(null);
    } else return;
    for (const listener of this.#listeners) listener.onResult?.(next.error);
  }

  /** Returns false if a listener failed. A retry then follows, as after a failed pass. */
  async #notify(pass: Pass): Promise<boolean> {
    try {
      for (const listener of this.#listeners) await listener.onPass?.(pass);
      return true;
    } catch (error) {
      this.#schedule({ error, requeueAfter: null });
      return false;
    }
  }
}

/** Returns tools that count failed calls to the control plane. An aborted call is no failure. */
export function countCalls(tools: Tools, link: string): Tools {
  const counted =
    <Given extends unknown[], Reply>(operation: string, call: (...given: Given) => Promise<Reply>) =>
    async (...given: Given): Promise<Reply> => {
      try {
        return await call(...given);
      } catch (error) {
        if (error instanceof CpnError) tools.meter.callFailed(link, operation, error.name);
        throw error;
      }
    };
  return {
    ...tools,
    async connect(known, patience) {
      const service = await tools.connect(known, patience);
      return {
        ...service,
        readMap: counted('read_map', service.readMap),
        withdraw: counted('withdraw', service.withdraw),
        announceMasquerading: counted('announce_masquerading', service.announceMasquerading),
        announceSecret: counted('announce_secret', service.announceSecret),
        changeKey: counted('change_key', service.changeKey),
        report: counted('report', service.report),
      };
    },
  };
}
