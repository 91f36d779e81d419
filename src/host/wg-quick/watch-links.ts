import { networkInterfaces } from 'node:os';
import { isDeepStrictEqual } from 'node:util';
import type { HostEvent, Watch } from '../host.ts';
import { lookAgain } from '../look-again.ts';

/** It is cheap, as it starts no process. */
const usualMs = 2000;

/**
 * {@link Host.watch} where no system tells of changes: looks at interfaces and their addresses again and again, until the watch is
 * closed. Routes are not seen; the passes of the daemon's interval are what is left for these.
 */
export async function watchLinks(
  listener: (event: HostEvent) => void,
  everyMs = usualMs,
  look = networkInterfaces,
): Promise<Watch> {
  let known = look();
  return lookAgain(everyMs, () => {
    const found = look();
    for (const event of compare(known, found)) listener(event);
    known = found;
  });
}

type Cards = ReturnType<typeof networkInterfaces>;

function compare(before: Cards, after: Cards): HostEvent[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((link) => !isDeepStrictEqual(before[link], after[link]))
    .map((link) => ({
      kind: link in before && link in after ? 'address' : 'link',
      link,
      removed: !(link in after),
    }));
}
