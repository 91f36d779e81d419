/**
 * Runs inside a machine: prints each event of a watch, which its argument names, as a line of JSON, and closes the watch at the
 * end of its input.
 *
 * @module
 */
import type { HostEvent } from '../../src/host/host.ts';
import { linuxHost } from '../../src/host/linux/linux-host.ts';

/** What it prints beside events. */
export type Mark = 'watching' | 'closed';

/** What it watches. */
export type Watched = 'watch' | 'watchFirewall' | 'watchDevices';

/** Between two looks at WireGuard's tables. */
const everyMs = 100;

const tell = (mark: Mark) => process.stdout.write(`${mark}\n`);
const print = (event: HostEvent) => process.stdout.write(`${JSON.stringify(event)}\n`);

const watched = process.argv[2] as Watched;
const watch = await linuxHost()[watched](print, everyMs);
tell('watching');
process.stdin.resume().once('end', async () => {
  await watch.close();
  tell('closed');
});
