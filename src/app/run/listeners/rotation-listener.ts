import { Locked } from '../../../core/errors/index.ts';
import { listDialling } from '../../../core/routing/topology/via-connectors.ts';
import { accessOf } from '../../access.ts';
import type { ConfirmOptions } from '../../reconcile/await-confirmation.ts';
import type { Pass } from '../../reconcile/pass.ts';
import { resumeRotation, rotateKey } from '../../rotation/rotate.ts';
import type { Tools } from '../../tools.ts';
import type { PassListener } from '../pass-listener.ts';
import { TransitionLogger } from '../transition-logger.ts';

/** Seconds until the next try after a failed rotation: each try interrupts a working tunnel. */
const restAfterFailure = { begun: 30, new: 3_600 } as const;

/** The share by which a key may live longer, so that hosts do not all change theirs at once. */
const mostJitter = 0.1;

/**
 * Rotates a network's key when it is old enough, and completes rotations that were begun, one at a
 * time, without delaying passes. Keeps a key in profiles of devices, which receive no other.
 */
export class RotationListener implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #confirmMs: number;
  readonly #transitions: TransitionLogger;
  /** From 0 to 1: hosts that joined together do not rotate together. */
  readonly #jitter = Math.random();
  /** Seconds of the monotonic clock. */
  #restUntil = { begun: 0, new: 0 };
  #next: 'begun' | 'new' | null = null;
  #wake = () => {};

  readonly #trigger: () => void;

  /**
   * @param confirmMs milliseconds within which a peer must answer to a new key
   * @param trigger starts a pass; called after each try
   */
  constructor(tools: Tools, link: string, confirmMs: number, trigger: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#confirmMs = confirmMs;
    this.#trigger = trigger;
    const messages = { begins: 'the key could not be changed', ends: 'the key can be changed again' };
    this.#transitions = new TransitionLogger(tools.log, { interface: link }, messages);
  }

  async onPass({ evaluation }: Pass): Promise<void> {
    if (evaluation === null) return;
    const { listed, state } = evaluation;
    const { rotation, options, keySince } = state;
    const { map, peer } = state.membership;
    const isHeld = listDialling(map, peer).length > 0;
    const mayBegin = listed && rotation === null && state.refused === null && accessOf(state) !== null && !isHeld;
    const isOld = mayBegin && isDue(keySince, options.rotateEvery, this.#tools.now(), this.#jitter);
    // Peers that poll for changes would be cut off until their next poll.
    const isPushed = isOld && (await this.#tools.store.readNotes(this.#link)).sync.mode === 'push';
    const wanted = rotation !== null ? 'begun' : isPushed ? 'new' : null;
    this.#next = wanted !== null && this.#tools.monotonic() >= this.#restUntil[wanted] ? wanted : null;
    if (this.#next !== null) this.#wake();
  }

  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#wake());
    while (!signal.aborted) {
      const next = this.#next;
      this.#next = null;
      if (next === null) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      } else await this.#rotate(next, { withinMs: this.#confirmMs, signal });
    }
  }

  async #rotate(what: 'begun' | 'new', confirming: ConfirmOptions): Promise<void> {
    const { log, monotonic } = this.#tools;
    try {
      const work = what === 'new' ? rotateKey : resumeRotation;
      const rotated = await work(this.#tools, this.#link, confirming);
      this.#transitions.update(null);
      if (rotated === null) return;
      const { state, answered } = rotated;
      log.info(
        { interface: this.#link, key: state.keyPair.publicKey, answered: answered?.name ?? null },
        'key changed',
      );
    } catch (error) {
      if (what === 'begun' && error instanceof Locked) {
        // A command rotates the key; if it is killed, the daemon continues.
        this.#restUntil.begun = monotonic() + restAfterFailure.begun;
        return;
      }
      this.#restUntil[what] = monotonic() + restAfterFailure[what];
      this.#restUntil.new = Math.max(this.#restUntil.new, monotonic() + restAfterFailure.new);
      this.#transitions.update(error);
    } finally {
      this.#trigger();
    }
  }
}

/**
 * True if a key made at `since` (ISO 8601) is `every` seconds old; null for never. A key from a
 * clock that was ahead is due if its instant is that far in the future.
 */
function isDue(since: string, every: number | null, now: Date, jitter: number): boolean {
  return every !== null && Math.abs(now.getTime() - Date.parse(since)) >= every * 1000 * (1 + mostJitter * jitter);
}
