import { Locked } from '../../core/errors.ts';
import { isDue } from '../../core/key-age.ts';
import { accessOf } from '../access.ts';
import type { Confirming } from '../confirm.ts';
import { resumeRotation, rotateKey } from '../rotation/rotate.ts';
import type { Survey } from '../survey.ts';
import type { Tools } from '../tools.ts';
import { Once } from './once.ts';

/** Seconds after a change of keys that failed, or could not be ended, until the next try: it costs a tunnel that works. */
const restAfterFailure = { begun: 30, new: 3_600 } as const;

/** Makes a network's key new when it is old enough, and ends changes that were begun; one at a time, beside the passes. */
export class RotationWatch {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #confirmMs: number;
  readonly #once: Once;
  /** Between 0 and 1: hosts that joined together do not change their keys together. */
  readonly #jitter = Math.random();
  /** Seconds of the clock that nobody sets before which nothing is tried. */
  #restUntil = { begun: 0, new: 0 };
  #next: 'begun' | 'new' | null = null;
  #wake = () => {};

  readonly #ring: () => void;

  /**
   * @param confirmMs milliseconds within which somebody must answer to a new key
   * @param ring is called after each try
   */
  constructor(tools: Tools, link: string, confirmMs: number, ring: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#confirmMs = confirmMs;
    this.#ring = ring;
    const trouble = { begins: 'the key could not be changed', ends: 'the key can be changed again' };
    this.#once = new Once(tools.log, { interface: link }, trouble);
  }

  /** Takes one more look into account. */
  async note({ state, listed }: Survey): Promise<void> {
    const { rotation, options, keySince } = state;
    const mayBegin = listed && rotation === null && state.refused === null && accessOf(state) !== null;
    const isOld = mayBegin && isDue(keySince, options.rotateEvery, this.#tools.now(), this.#jitter);
    // Peers that are not told of changes at once would be cut off until they ask.
    const isTold = isOld && (await this.#tools.store.readNotes(this.#link)).sync.mode === 'push';
    const wanted = rotation !== null ? 'begun' : isTold ? 'new' : null;
    this.#next = wanted !== null && this.#tools.monotonic() >= this.#restUntil[wanted] ? wanted : null;
    if (this.#next !== null) this.#wake();
  }

  /** Goes on until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
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

  async #rotate(what: 'begun' | 'new', confirming: Confirming): Promise<void> {
    const { log, monotonic } = this.#tools;
    const interfaceOnly = { interface: this.#link };
    try {
      const work = what === 'new' ? rotateKey : resumeRotation;
      const rotated = await work(this.#tools, this.#link, confirming);
      this.#once.notice(null);
      if (rotated === null) return;
      const { state, answered } = rotated;
      log.info({ ...interfaceOnly, key: state.keyPair.publicKey, answered: answered?.name ?? null }, 'key changed');
    } catch (error) {
      if (what === 'begun' && error instanceof Locked) {
        // A command is at it; should it be killed, this goes on with it.
        this.#restUntil.begun = monotonic() + restAfterFailure.begun;
        return;
      }
      this.#restUntil[what] = monotonic() + restAfterFailure[what];
      this.#restUntil.new = Math.max(this.#restUntil.new, monotonic() + restAfterFailure.new);
      this.#once.notice(error);
    } finally {
      this.#ring();
    }
  }
}
