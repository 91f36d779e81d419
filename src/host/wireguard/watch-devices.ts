import type { HostEvent, Watch } from '../host.ts';
import type { OutputCache } from '../process/output-cache.ts';
import type { Run } from '../process/run.ts';
import { type Digests, digestDevices } from './digest-devices.ts';
import { pollUntilClosed } from './poll.ts';

/** Detects a change within 10 s, with the time to read many peers. */
const defaultIntervalMs = 7000;

/** Of one poll: a WireGuard in user space that hangs must not delay the end of the watch. */
const deadlineMs = 4000;

/**
 * {@link Host.watchDevices}: polls all WireGuard tables, never two at once.
 */
export async function watchDevices(
  run: Run,
  listener: (event: HostEvent) => void,
  everyMs = defaultIntervalMs,
  outputCache?: OutputCache,
): Promise<Watch> {
  let known = await readDigests(run, outputCache);
  return pollUntilClosed(everyMs, async (signal) => {
    const found = await readDigests(run, outputCache);
    if (signal.aborted || found === null) return;
    if (known !== null) for (const event of compare(known, found)) listener(event);
    known = found;
  });
}

/** Null after a failure, which the next poll retries. */
async function readDigests(run: Run, outputCache: OutputCache | undefined): Promise<Digests | null> {
  return run('wg', ['show', 'all', 'dump'], { deadlineMs, ...(outputCache && { outputCache }) })
    .then(digestDevices)
    .catch(() => null);
}

function compare(before: Digests, after: Digests): HostEvent[] {
  const links = [...new Set([...before.keys(), ...after.keys()])];
  return links
    .filter((link) => before.get(link) !== after.get(link))
    .map((link) => ({ kind: 'device', link, removed: !after.has(link) }));
}
