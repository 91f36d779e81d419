import { Refused } from '../../core/errors/index.ts';
import { saveFeatures } from '../service-features.ts';
import type { Tools } from '../tools.ts';
import { withJitter } from './coalescing.ts';
import type { PassListener } from './pass-listener.ts';

/** Seconds between two requests, and after a failed one. */
const usualRest = 3_600;
const restAfterFailure = 300;

/** Reads the description of a network's service at the start, and then once an hour. */
export class FeatureFollower implements PassListener {
  readonly #tools: Tools;
  readonly #link: string;
  readonly #onChange: () => void;
  /** Of the last description of this process: an earlier version may have saved the features. */
  #etag: string | null = null;
  #url: string | null = null;

  /** @param onChange called after other features were saved */
  constructor(tools: Tools, link: string, onChange: () => void) {
    this.#tools = tools;
    this.#link = link;
    this.#onChange = onChange;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const rest = await this.#read(signal);
      await this.#tools.sleep(withJitter(rest) * 1000, signal);
    }
  }

  /** Returns the seconds until the next request. A failure keeps the features. */
  async #read(signal: AbortSignal): Promise<number> {
    const { store, log, describe } = this.#tools;
    const facts = { interface: this.#link };
    try {
      const state = await store.read(this.#link);
      if (state === null) return usualRest;
      const { url } = state.service;
      const description = await describe(state.service, url === this.#url ? this.#etag : null, signal);
      if (description === null) return usualRest;
      const { features, etag } = description;
      if (await saveFeatures(this.#tools, this.#link, features)) {
        log.info({ ...facts, features }, 'the features of the service changed');
        this.#onChange();
      }
      this.#etag = etag;
      this.#url = url;
      return usualRest;
    } catch (error) {
      if (signal.aborted) return 0;
      const message = error instanceof Error ? error.message : String(error);
      log.debug({ ...facts, error: message }, 'the description of the service cannot be read');
      return error instanceof Refused ? usualRest : restAfterFailure;
    }
  }
}
