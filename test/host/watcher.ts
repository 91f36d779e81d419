/**
 * Runs inside a machine: prints each event of a watch as a line of JSON, and closes the watch at the end of its input.
 *
 * @module
 */
import { linuxHost } from '../../src/host/linux/linux-host.ts';

/** What it prints beside events. */
export type Mark = 'watching' | 'closed';

const tell = (mark: Mark) => process.stdout.write(`${mark}\n`);

const watch = await linuxHost().watch((event) => process.stdout.write(`${JSON.stringify(event)}\n`));
tell('watching');
process.stdin.resume().once('end', async () => {
  await watch.close();
  tell('closed');
});
