import { closeSync, constants, fstatSync, openSync, type Stats } from 'node:fs';
import { UnreadableFile } from '../../core/errors/index.ts';
import { codeOf, touch } from './disk.ts';

/** Bytes. Beyond any file of ours. */
const mostBytes = 64 * 1024 * 1024;

/**
 * Calls `work` with the file at `path`, open for reading. Follows no link, does not block on a
 * pipe, and reads no device. Checks the open file, which no other file can replace in between.
 *
 * Synchronous, like all small reads in a pass: Node's thread pool takes ten times as long.
 *
 * @param allow codes of the operating system that the caller handles
 * @throws UnreadableFile if it is not a regular file
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
      // Reading a folder fails with its own error.
      if (!stats.isFile() && !stats.isDirectory()) throw irregular(path, 'is not a regular file');
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
    if (code === 'ENXIO') throw irregular(path, 'is not a regular file');
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
