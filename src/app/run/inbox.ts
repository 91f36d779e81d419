import { type News, noNews } from '../news.ts';

/** News that wait for a pass, and whether it took them. */
interface Delivery {
  readonly news: News;
  readonly taken: PromiseWithResolvers<boolean>;
}

/** Where news lie until the next pass over a network takes them: the newest alone, as they hold what older ones told. */
export class Inbox {
  #delivery: Delivery | null = null;

  /** Puts news in. Settles once a pass took them; with false where it failed, or nobody will. */
  put(news: News): Promise<boolean> {
    const taken = Promise.withResolvers<boolean>();
    this.#delivery = { news, taken };
    return taken.promise;
  }

  /** Takes out what is there; `settle` tells whoever put it in how the pass ended. */
  take(): { readonly news: News; settle(isTaken: boolean): void } {
    const delivery = this.#delivery;
    this.#delivery = null;
    return { news: delivery?.news ?? noNews, settle: (isTaken) => delivery?.taken.resolve(isTaken) };
  }
}
