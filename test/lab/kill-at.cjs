/**
 * Preloaded into a program (`node --require kill-at.cjs`), counts the checkpoints that it passes, from 1. At the one whose number is
 * in `KILL_AT` it sends the program SIGKILL, as a power cut would but for what the kernel has not yet written to the disk, or the
 * signal that `KILL_WITH` names. Where `CHECKPOINTS` names a file, it writes each of them there, a line each.
 *
 * @module
 */
const { subscribe } = require('node:diagnostics_channel');
const { appendFileSync } = require('node:fs');

const { KILL_AT: last, KILL_WITH: signal = 'SIGKILL', CHECKPOINTS: list } = process.env;
let count = 0;

subscribe('cpn:checkpoint', ({ point, what }) => {
  count += 1;
  if (list !== undefined) appendFileSync(list, `${point} ${what}\n`);
  if (count === Number(last)) process.kill(process.pid, signal);
});
