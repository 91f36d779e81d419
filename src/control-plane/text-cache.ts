/** A text as it goes over the wire, once for all who are sent it. */
interface Text {
  readonly bytes: Buffer;
}

/** What an entry costs besides its text. */
const overhead = 256;

/**
 * Texts that many ask for, each made once: who asks while one is made gets the same. The latest stay, up to so many bytes. What
 * a key stands for never changes.
 */
export class TextCache<Kept extends Text> {
  readonly #maxBytes: number;
  readonly #kept = new Map<string, Promise<Kept>>();
  readonly #sizes = new Map<string, number>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get(key: string, make: () => Promise<Kept>): Promise<Kept> {
    const known = this.#kept.get(key);
    if (known) return known;
    const making = make();
    this.#kept.set(key, making);
    making.then(
      ({ bytes }) => this.#keep(key, bytes.length + overhead),
      () => this.#kept.delete(key),
    );
    return making;
  }

  #keep(key: string, size: number): void {
    this.#sizes.set(key, size);
    this.#bytes += size;
    for (const [oldest, bytes] of this.#sizes) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#sizes.delete(oldest);
      this.#kept.delete(oldest);
      this.#bytes -= bytes;
    }
  }
}
