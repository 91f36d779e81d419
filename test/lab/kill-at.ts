/**
 * Preloaded into a program (`node --import kill-at.ts`), kills it at the checkpoint whose number is in `KILL_AT`, counted
 * from 1: as a power cut would, but for what the kernel has not yet written to the disk.
 *
 * @module
 */
import { subscribe } from 'node:diagnostics_channel';

const last = Number(process.env.KILL_AT);
let count = 0;

subscribe('cpn:checkpoint', () => {
  count += 1;
  if (count === last) process.kill(process.pid, 'SIGKILL');
});
