import type { Stats } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { ignore } from './disk.ts';
import { withRegular } from './regular-file.ts';

/** Which content a file has: whoever changes it changes one of these (inode(7)). */
interface Stamp {
  readonly dev: number;
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
}

interface Known {
  /** Null where it may change without being told by its times. */
  readonly stamp: Stamp | null;
  readonly bytes: Buffer;
  readonly text: string;
}

/** Two changes within the grain of a file system's clock have the same time: 2 s is the coarsest, that of FAT. */
const grainMs = 3000;

/**
 * Texts of files as they were last read. Every reading opens the file and looks at it; where it has not changed since, its content is
 * not read again, and the text is the very string: that of 10,000 peers is 4 MB, at every pass.
 */
export class KnownTexts {
  readonly #texts = new Map<string, Known>();

  /**
   * The text of a file, or null when there is none.
   *
   * @param judge throws for a file that is not to be believed
   * @throws DiskFailed when it is there and cannot be read
   * @throws UnreadableFile when it is no regular file
   */
  async read(path: string, judge: (stats: Stats) => void = () => {}): Promise<string | null> {
    const read = async (file: FileHandle, stats: Stats) => {
      judge(stats);
      const known = this.#texts.get(path);
      if (known?.stamp && isSame(known.stamp, stats)) return known.text;
      this.#texts.delete(path);
      const stamp = Date.now() - stats.ctimeMs > grainMs ? stats : null;
      const read = await file.readFile();
      const { bytes, text } = known?.bytes.equals(read) ? known : { bytes: read, text: read.toString('utf8') };
      this.#texts.set(path, { stamp, bytes, text });
      return text;
    };
    try {
      return await withRegular(path, read, ['ENOENT']);
    } catch (error) {
      this.#texts.delete(path);
      return ignore(error, ['ENOENT'], null);
    }
  }

  /** What was just written there; whoever reads it need not decode it. */
  expect(path: string, bytes: Buffer, text: string): void {
    this.#texts.set(path, { stamp: null, bytes, text });
  }

  /** Keeps nothing of it in memory. */
  forget(path: string): void {
    this.#texts.delete(path);
  }
}

function isSame(one: Stamp, other: Stamp): boolean {
  return (
    one.dev === other.dev &&
    one.ino === other.ino &&
    one.size === other.size &&
    one.mtimeMs === other.mtimeMs &&
    one.ctimeMs === other.ctimeMs
  );
}
