import { readFileSync, type Stats } from 'node:fs';
import { ignore } from './disk.ts';
import { withRegular } from './regular-file.ts';

/** Identifies the content of a file: each change alters one of these fields (inode(7)). */
interface Stamp {
  readonly dev: number;
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
}

export interface CachedFile<T> {
  readonly text: string;
  readonly value: T;
  /** True if this process wrote and synced it. Content read may not be on the disk yet. */
  readonly isSynced: boolean;
}

interface CacheEntry<T> extends CachedFile<T> {
  /** Null if the file may change again without a new stamp. */
  readonly stamp: Stamp | null;
  readonly bytes: Buffer;
}

/** Milliseconds: changes within a file system's granularity (FAT: 2 s) have the same time. */
const granularityMs = 3000;

/**
 * Caches files with their parsed values. A read opens the file, and skips reading and parsing if
 * the stamp is the same. With 10,000 peers the state has 4 MB, and parsing takes 0.1 s.
 */
export class FileCache<T> {
  readonly #parse: (path: string, text: string) => T;
  readonly #entries = new Map<string, CacheEntry<T>>();

  /** @param parse must not throw */
  constructor(parse: (path: string, text: string) => T) {
    this.#parse = parse;
  }

  /**
   * Reads a file. Null if it does not exist.
   *
   * @param judge throws for an untrusted file
   * @throws DiskFailed if it exists and cannot be read
   * @throws UnreadableFile if it is no regular file
   */
  async read(path: string, judge: (stats: Stats) => void = () => {}): Promise<CachedFile<T> | null> {
    const read = (file: number, stats: Stats): CacheEntry<T> => {
      judge(stats);
      const known = this.#entries.get(path);
      if (known?.stamp && isSame(known.stamp, stats)) return known;
      this.#entries.delete(path);
      const stamp = Date.now() - stats.ctimeMs > granularityMs ? stats : null;
      const bytes = readFileSync(file);
      const entry = known?.bytes.equals(bytes) ? { ...known, stamp } : this.#decode(path, bytes, stamp);
      this.#entries.set(path, entry);
      return entry;
    };
    try {
      return await withRegular(path, read, ['ENOENT']);
    } catch (error) {
      this.#entries.delete(path);
      return ignore(error, ['ENOENT'], null);
    }
  }

  /** Stores the content of a write, before or after its sync, so that no read parses it. */
  expect(path: string, bytes: Buffer, text: string, value: T, isSynced = true): void {
    this.#entries.set(path, { stamp: null, bytes, text, value, isSynced });
  }

  /** Drops the file from memory. */
  forget(path: string): void {
    this.#entries.delete(path);
  }

  #decode(path: string, bytes: Buffer, stamp: Stamp | null): CacheEntry<T> {
    const text = bytes.toString('utf8');
    return { stamp, bytes, text, value: this.#parse(path, text), isSynced: false };
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
