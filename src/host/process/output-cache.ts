import { fstatSync, readSync } from 'node:fs';
import type { AnonymousFile } from './anonymous-file.ts';

/** Bytes per decoder call. Texts over 1 MB are outside V8's heap, and cause full collections. */
const pieceBytes = 256 * 1024;

/**
 * The last output of a tool that runs repeatedly. Equal output is not decoded again, and reading it
 * allocates nothing. With 10,000 peers, each pass reads several MB.
 */
export class OutputCache {
  #last: { readonly whole: Buffer; readonly bytes: Buffer; readonly text: string } | null = null;
  #spare: Buffer | null = null;

  /** Reads a file from its beginning. */
  read({ fd }: AnonymousFile): string {
    const length = fstatSync(fd).size;
    const spare = this.#spare;
    const whole = spare !== null && spare.length >= length ? spare : Buffer.allocUnsafeSlow(Math.ceil(length * 1.25));
    const bytesRead = readSync(fd, whole, 0, length, 0);
    const bytes = whole.subarray(0, bytesRead);
    const last = this.#last;
    if (last !== null && bytes.equals(last.bytes)) {
      this.#spare = whole;
      return last.text;
    }
    const text = decode(bytes);
    this.#last = { whole, bytes, text };
    this.#spare = last?.whole ?? null;
    return text;
  }
}

function decode(bytes: Buffer): string {
  let text = '';
  let start = 0;
  while (start < bytes.length) {
    // A piece ends at a newline, so it splits no character.
    const end = bytes.length - start <= pieceBytes ? bytes.length : bytes.lastIndexOf(10, start + pieceBytes) + 1;
    const piece = end > start ? end : bytes.length;
    text += bytes.toString('utf8', start, piece);
    start = piece;
  }
  return text;
}
