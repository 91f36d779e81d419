import { type Digests, digestDevices } from './digest-devices.ts';
import type { HostEvent, Watch } from './host.ts';
import type { KnownOutput } from './known-output.ts';
import { lookAgain } from './look-again.ts';
import type { Run } from './run.ts';

/** So that a change is found within 10 s, with the time that a look at many peers takes. */
const usualMs = 7000;

/** For one look: a WireGuard in user space that hangs must not hold up the end of the watch for long. */
const deadlineMs = 4000;

/**
 * {@link Host.watchDevices}: looks at all WireGuard tables again and again, never twice at once.
 *
 * @param again where a shell may stand by for it
 */
export async function watchDevices(
  run: Run,
  listener: (event: HostEvent) => void,
  everyMs = usualMs,
  again?: KnownOutput,
): Promise<Watch> {
  let known = await look(run, again);
  return lookAgain(everyMs, async (signal) => {
    const found = await look(run, again);
    if (signal.aborted || found === null) return;
    if (known !== null) for (const event of compare(known, found)) listener(event);
    known = found;
  });
}

/** Null where it cannot be told: the next look may. */
async function look(run: Run, again: KnownOutput | undefined): Promise<Digests | null> {
  return run('wg', ['show', 'all', 'dump'], { deadlineMs, ...(again && { again }) })
    .then(digestDevices)
    .catch(() => null);
}

function compare(before: Digests, after: Digests): HostEvent[] {
  const links = [...new Set([...before.keys(), ...after.keys()])];
  return links
    .filter((link) => before.get(link) !== after.get(link))
    .map((link) => ({ kind: 'device', link, removed: !after.has(link) }));
}
