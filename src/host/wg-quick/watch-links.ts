import { networkInterfaces } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { HostEvent, Watch } from '../host.ts';
import { pollUntilClosed } from '../wireguard/poll.ts';

/** Cheap, because it starts no process. */
const defaultIntervalMs = 2000;

/**
 * {@link Host.watch} by polling interfaces and their addresses. It reports no changes of routes: the daemon finds these in the passes of
 * its interval.
 */
export async function watchLinks(
  listener: (event: HostEvent) => void,
  everyMs = defaultIntervalMs,
  read = networkInterfaces,
): Promise<Watch> {
  let known = read();
  return pollUntilClosed(everyMs, () => {
    const found = read();
    for (const event of compare(known, found)) listener(event);
    known = found;
  });
}

type Interfaces = ReturnType<typeof networkInterfaces>;

function compare(before: Interfaces, after: Interfaces): HostEvent[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((link) => !isDeepStrictEqual(before[link], after[link]))
    .map((link) => ({
      kind: link in before && link in after ? 'address' : 'link',
      link,
      removed: !(link in after),
    }));
}
