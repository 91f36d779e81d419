import { isFresh, type Seen } from './seen.ts';

/** A text as it goes over the wire, once for all who are sent it. */
interface Text {
  readonly bytes: Buffer;
}

/** The texts of a network at its latest revision. */
interface Latest<Kept> {
  readonly revision: Seen;
  readonly texts: Map<string, Promise<Kept>>;
  bytes: number;
}

/** What an entry costs besides its text. */
const overhead = 256;

/**
 * Texts of networks that many ask for, each made once: who asks while one is made gets the same. Those of the latest revision that was
 * asked for stay, of the networks that changed last, up to so many bytes.
 */
export class TextCache<Kept extends Text> {
  readonly #maxBytes: number;
  readonly #networks = new Map<number, Latest<Kept>>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @param make makes the text called `name` of this revision or a later one: whoever is late gets the latest */
  get(id: number, revision: Seen, name: string, make: (revision: Seen) => Promise<Kept>): Promise<Kept> {
    const latest = this.#latestOf(id, revision);
    const known = latest.texts.get(name);
    if (known) return known;
    const making = make(latest.revision);
    latest.texts.set(name, making);
    making.then(
      ({ bytes }) => this.#count(id, latest, bytes.length + overhead),
      () => latest.texts.delete(name),
    );
    return making;
  }

  #latestOf(id: number, revision: Seen): Latest<Kept> {
    const known = this.#networks.get(id);
    if (known !== undefined && isFresh({ ...known, read: known.revision.at }, revision)) return known;
    this.#forget(id, known);
    const latest = { revision, texts: new Map(), bytes: 0 };
    this.#networks.set(id, latest);
    return latest;
  }

  #count(id: number, latest: Latest<Kept>, size: number): void {
    if (this.#networks.get(id) !== latest) return;
    latest.bytes += size;
    this.#bytes += size;
    for (const [oldest, other] of this.#networks) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#forget(oldest, other);
    }
  }

  #forget(id: number, latest: Latest<Kept> | undefined): void {
    if (this.#networks.delete(id)) this.#bytes -= latest?.bytes ?? 0;
  }
}
