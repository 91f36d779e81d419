import { closeSync, constants, fstatSync, openSync, type Stats } from 'node:fs';
import { UnreadableFile } from '../../core/errors/index.ts';
import { codeOf, touch } from './disk.ts';

/** Longer than any file of ours. */
const mostBytes = 64 * 1024 * 1024;

/**
 * Does `work` with the file at `path` itself, open for reading: it follows no link, does not block on a pipe, and reads no device.
 * The type of the file is checked once it is open, so that nothing can take its place in between.
 *
 * Synchronous, as all reads and checks of small files in a pass are: the way through Node's threads takes ten times as long as the
 * call itself.
 *
 * @param allow codes of the operating system that are for the caller
 * @throws UnreadableFile for what is no regular file
 * @throws DiskFailed
 */
export async function withRegular<T>(
  path: string,
  work: (file: number, stats: Stats) => T,
  allow: readonly string[] = [],
): Promise<T> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const read = async () => {
    const file = openSync(path, flags);
    try {
      const stats = fstatSync(file);
      // A folder says itself that it cannot be read.
      if (!stats.isFile() && !stats.isDirectory()) throw irregular(path, 'is no regular file');
      if (stats.size > mostBytes) throw irregular(path, `is larger than ${mostBytes / 1024 / 1024} MiB`);
      return work(file, stats);
    } finally {
      closeSync(file);
    }
  };
  try {
    return await touch('read', path, read, [...allow, 'ELOOP', 'ENXIO']);
  } catch (error) {
    const code = codeOf(error);
    if (code === 'ELOOP') throw irregular(path, 'is a symbolic link, which is not followed');
    if (code === 'ENXIO') throw irregular(path, 'is no regular file');
    throw error;
  }
}

function irregular(path: string, problem: string): UnreadableFile {
  return new UnreadableFile(
    path,
    problem,
    'check where it comes from, and remove it or put the file itself in its place',
  );
}
