import { existsSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

/** Bytes that must be free: a PostgreSQL takes a few hundred MiB, and a container may have 64 MiB in all. */
const NEEDED = 2 ** 30;

/** Where temporary folders go that need not survive a power cut: in memory, if that can be, no change waits for a disk. */
export const memory = hasRoom('/dev/shm') ? '/dev/shm' : tmpdir();

function hasRoom(folder: string): boolean {
  if (!existsSync(folder)) return false;
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize >= NEEDED;
}
