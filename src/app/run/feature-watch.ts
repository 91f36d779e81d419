import { Refused } from '../../core/errors.ts';
import { saveFeatures } from '../described.ts';
import type { Tools } from '../tools.ts';
import { spread } from './interval.ts';

/** Seconds between two readings of a description, and after one that failed. */
const usualRest = 3_600;
const restAfterFailure = 300;

/** Follows what the service of one network describes: reads it at the start, and then once an hour. */
export class FeatureWatch {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #onChange: () => void;
  /** Of the description that was read last by this process; what is on disk may have been made of it by an earlier version. */
  #etag: string | null = null;

  /** @param onChange called after other features were saved */
  constructor(tools: Tools, link: string, onChange: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#onChange = onChange;
  }

  /** Goes on until `signal` aborts. */
  async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const rest = await this.#read(signal);
      await this.#tools.sleep(spread(rest) * 1000, signal);
    }
  }

  /** Seconds until the next time. Whatever fails, the service goes by what it described before. */
  async #read(signal: AbortSignal): Promise<number> {
    const { store, log, describe } = this.#tools;
    const facts = { interface: this.#link };
    try {
      const state = await store.read(this.#link);
      if (state === null) return usualRest;
      const described = await describe(state.service, this.#etag, signal);
      if (described === null) return usualRest;
      const { features, etag } = described;
      if (await saveFeatures(this.#tools, this.#link, features)) {
        log.info({ ...facts, features }, 'the service describes other features');
        this.#onChange();
      }
      this.#etag = etag;
      return usualRest;
    } catch (error) {
      if (signal.aborted) return 0;
      const why = error instanceof Error ? error.message : String(error);
      log.debug({ ...facts, error: why }, 'the description of the service cannot be read');
      return error instanceof Refused ? usualRest : restAfterFailure;
    }
  }
}
