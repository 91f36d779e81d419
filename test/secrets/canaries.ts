import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A value that must not be seen, in one of its encodings. */
interface Form {
  readonly what: string;
  readonly bytes: Buffer;
}

/** Below this a form would be found by chance. */
const leastBytes = 10;

/** Secrets of a run, and the places where any of them appears in the clear. */
export class Canaries {
  readonly #forms = new Map<string, Form>();

  /** A password, token or key that is sent as the text it is. */
  addText(what: string, text: string): void {
    const bytes = Buffer.from(text);
    this.#add(what, bytes);
    this.#add(`${what} in base64`, utf8(bytes.toString('base64').replace(/.{0,2}={0,2}$/, '')));
    this.#add(`${what} in hex`, utf8(bytes.toString('hex')));
    this.#add(`${what} in a URL`, utf8(encodeURIComponent(text)));
  }

  /** Bytes that are kept as base64: a private key, a preshared key, the seed of an identity, a network secret. */
  addKey(what: string, base64: string): void {
    const bytes = Buffer.from(base64, 'base64');
    this.#add(what, utf8(base64.replace(/=+$/, '')));
    this.#add(`${what} in base64url`, utf8(bytes.toString('base64url')));
    this.#add(`${what} in hex`, utf8(bytes.toString('hex')));
    this.#add(`${what} in capital hex`, utf8(bytes.toString('hex').toUpperCase()));
    this.#add(`${what} as bytes`, bytes);
    this.#add(`${what} as a list of numbers`, utf8([...bytes].join(',')));
  }

  /** Every secret that a state file holds, whatever else it holds. */
  addState(text: string): void {
    const { privateKey, identity, networkSecret, rotation, enrollment, membership } = JSON.parse(text);
    this.addKey('private key', privateKey);
    if (identity) this.addKey('identity', identity);
    if (networkSecret) this.addKey('network secret', networkSecret);
    if (rotation?.privateKey) this.addKey('next private key', rotation.privateKey);
    this.addText('idempotency key', enrollment.idempotencyKey);
    if (membership?.accessToken) this.addText('access token', membership.accessToken);
    if (membership?.personalToken) this.addText('personal token', membership.personalToken);
  }

  /** What of them stands in a text, by name; but not those whose names begin with one of `but`. */
  find(text: string | Buffer, but: readonly string[] = []): string[] {
    const bytes = typeof text === 'string' ? Buffer.from(text) : text;
    const forms = [...this.#forms.values()].filter(({ what }) => !but.some((name) => what.startsWith(name)));
    return [...new Set(forms.filter((form) => bytes.includes(form.bytes)).map(({ what }) => what))];
  }

  /** The files below a folder in which any of them stands: `path: names`. */
  async findInFiles(folder: string): Promise<string[]> {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    const found: string[] = [];
    for (const file of files.toSorted()) {
      // A file that is removed meanwhile is skipped.
      const names = this.find(await readFile(file).catch(() => ''));
      if (names.length > 0) found.push(`${file}: ${names.join(', ')}`);
    }
    return found;
  }

  #add(what: string, bytes: Buffer): void {
    if (bytes.length < leastBytes) throw new Error(`the canary ${what} is too short: it would be found by chance`);
    const key = bytes.toString('hex');
    if (!this.#forms.has(key)) this.#forms.set(key, { what, bytes });
  }
}

function utf8(text: string): Buffer {
  return Buffer.from(text);
}
