import { CpnError } from '../../../core/errors/index.ts';
import type { TryMessage } from '../../../core/paths/attempt-state.ts';
import {
  type AttemptFacts,
  addRecord,
  type PathRecord,
  type PathSwitch,
  recordAttempt,
} from '../../../core/paths/path-record.ts';
import type { Tools } from '../../tools.ts';

/**
 * Records the latest attempt and switch of each peer in the notes of a network, and counts them for
 * the metrics. A lost record changes no path.
 */
export class PathRecorder {
  readonly #tools: Pick<Tools, 'store' | 'now' | 'meter' | 'log'>;
  readonly #link: string;
  #writing: Promise<void> = Promise.resolve();

  constructor(tools: Pick<Tools, 'store' | 'now' | 'meter' | 'log'>, link: string) {
    this.#tools = tools;
    this.#link = link;
  }

  attempted(peer: number, message: TryMessage, facts: Omit<AttemptFacts, 'at'>): void {
    this.#tools.meter.triedPath(this.#link, facts.outcome);
    this.#add(peer, { attempt: recordAttempt(message, { ...facts, at: this.#now() }) });
  }

  switched(peer: number, to: PathSwitch['to'], why: PathSwitch['why']): void {
    this.#tools.meter.switchedPath(this.#link, to);
    this.#add(peer, { switched: { to, at: this.#now(), why } });
  }

  #add(peer: number, facts: Partial<PathRecord>): void {
    this.#writing = this.#writing.then(() => this.#write(peer, facts));
  }

  async #write(peer: number, facts: Partial<PathRecord>): Promise<void> {
    const { store, log } = this.#tools;
    try {
      const { paths } = await store.readNotes(this.#link);
      await store.amendNotes(this.#link, { paths: addRecord(paths, peer, facts) });
    } catch (error) {
      if (!(error instanceof CpnError)) throw error;
      log.debug({ interface: this.#link, error: error.message }, 'a direct path could not be recorded');
    }
  }

  /** Resolves when all records are written. */
  async settle(): Promise<void> {
    await this.#writing;
  }

  #now(): string {
    return this.#tools.now().toISOString();
  }
}
