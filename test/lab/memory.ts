import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';

/** Where temporary folders go that need not survive a power cut: in memory, if that can be, no change waits for a disk. */
export const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();
