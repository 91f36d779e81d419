/**
 * Preloaded into a program (`node --require kill-at.cjs`), counts the checkpoints that it passes, from 1. At the one whose number is
 * in `KILL_AT` it sends the program SIGKILL, as a power cut would but for what the kernel has not yet written to the disk, or the
 * signal that `KILL_WITH` names. Where `CHECKPOINTS` names a file, it writes each of them there, a line each.
 *
 * At the first checkpoint that is `STOP_AT`, such as `rename cpn0.json`, it sends the program SIGSTOP, or the signal of `KILL_WITH`.
 * A stopped program continues after SIGCONT. Each is passed twice, before and after; with `STOP_AFTER` it is the second one.
 *
 * @module
 */
const { subscribe } = require('node:diagnostics_channel');
const { appendFileSync } = require('node:fs');
const { basename } = require('node:path');

const { KILL_AT: last, KILL_WITH: signal, CHECKPOINTS: list, STOP_AT: place, STOP_AFTER: after } = process.env;
let count = 0;
let passed = 0;

subscribe('cpn:checkpoint', ({ point, what }) => {
  count += 1;
  if (list !== undefined) appendFileSync(list, `${point} ${what}\n`);
  if (count === Number(last)) process.kill(process.pid, signal ?? 'SIGKILL');
  if (`${point} ${basename(what)}` !== place) return;
  passed += 1;
  if (passed === (after === undefined ? 1 : 2)) process.kill(process.pid, signal ?? 'SIGSTOP');
});
