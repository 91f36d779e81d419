/**
 * Runs inside a machine: prints each event of a watch, which its argument names, as a line of JSON, and closes the watch at the
 * end of its input.
 *
 * @module
 */
import type { HostEvent } from '../../src/host/host.ts';
import { linuxHost } from '../../src/host/linux/linux-host.ts';

/** What it prints in addition to events. */
export type Mark = 'watching' | 'closed';

export type Watched = 'watch' | 'watchFirewall' | 'watchDevices';

const everyMs = 100;

const printMark = (mark: Mark) => process.stdout.write(`${mark}\n`);
const print = (event: HostEvent) => process.stdout.write(`${JSON.stringify(event)}\n`);

const watched = process.argv[2] as Watched;
const watch = await linuxHost()[watched](print, everyMs);
printMark('watching');
process.stdin.resume().once('end', async () => {
  await watch.close();
  printMark('closed');
});
