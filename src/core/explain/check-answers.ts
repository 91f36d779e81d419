import { isTakenByTunnel, type ReturnPath } from '../routing/return-path.ts';
import { type Check, inconclusive, passes } from './check.ts';
import { describeRefusal, describeRoute } from './check-route.ts';
import type { NetworkOnHost } from './view.ts';

/**
 * Reports where replies to an address go, from each address of this host; empty without a full
 * tunnel.
 */
export function checkAnswers(paths: readonly ReturnPath[], { desired: { link } }: NetworkOnHost): Check[] {
  if (paths.length === 0) return [];
  const details = paths.map(({ from, route: kernelRoute }) => {
    const where =
      kernelRoute.link === null ? describeRefusal(kernelRoute) : describeRoute({ ...kernelRoute, source: null });
    return `from ${from}: ${where}`;
  });
  const detail = details.join('; ');
  const isTaken = paths.some((path) => isTakenByTunnel(path, link));
  if (!isTaken) return [passes('answers', detail)];
  return [inconclusive('answers', detail, `${link} takes answers that belong outside; "cpn doctor" says why`)];
}
