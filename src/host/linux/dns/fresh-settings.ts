import { lstatSync, type Stats, statSync } from 'node:fs';
import { isOwnFile } from '../../../core/names/drop-in.ts';
import { readOfRoot } from './resolvers.ts';

/** Milliseconds. The clock that gives files their times ticks up to 10 ms apart. */
const tolerance = 20;

/**
 * The first path that changed after a resolver started; null without any. Only settings that it
 * started with are known to let it start again: its own check finds some errors alone. Our files do
 * not count.
 *
 * @param startedAt milliseconds since the epoch
 */
export function findNewer(paths: readonly string[], startedAt: number): string | null {
  return paths.find((path) => changedAt(path) > startedAt && !isOwnFile(path, readOfRoot(path))) ?? null;
}

/** True if the clock was ahead when the file changed: no start is later then. */
export function isFromFuture(path: string): boolean {
  return changedAt(path) > Date.now() + tolerance;
}

/** No program can set this time, unlike the time of modification. */
function changedAt(path: string): number {
  // The path may be a link that led elsewhere before.
  return Math.max(...[statSync, lstatSync].map((read) => readTime(read, path)));
}

/** Devices have no settings, and those of the daemon's sandbox are as new as it is. */
function readTime(read: (path: string) => Stats, path: string): number {
  try {
    const stats = read(path);
    return stats.isFile() || stats.isDirectory() || stats.isSymbolicLink() ? stats.ctimeMs : 0;
  } catch {
    return 0;
  }
}
