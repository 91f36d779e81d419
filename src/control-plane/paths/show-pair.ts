import type { PathHealth, PeerPath } from '../../contract/health.ts';
import type { PathAttempt } from '../../contract/paths.ts';
import type { Pair } from './pair.ts';

/**
 * Adds to a reported path since when the pair is direct, or what became of its latest attempt.
 *
 * @param showsEndpoints true for readers who may see the endpoints that were tried
 */
export function showPair(path: PeerPath, pair: Pair, showsEndpoints: boolean): PathHealth {
  if (pair.state === 'direct')
    return path.path === 'direct' ? { ...path, direct_since: new Date(pair.at).toISOString() } : path;
  const attempt = describeAttempt(pair, showsEndpoints);
  return attempt === null ? path : { ...path, attempt };
}

/** Null for an attempt that goes on. */
function describeAttempt({ a, b, state, at, data }: Pair, showsEndpoints: boolean): PathAttempt | null {
  if (state !== 'resting') return null;
  const { tried, ended, nats = [] } = data;
  const symmetric = [a, b].filter((_, index) => nats[index] === 'symmetric');
  const all = Object.entries(tried ?? {}).flatMap(([by, each]) =>
    each.map(({ endpoint, outcome }) => ({ by: Number(by), outcome, ...(showsEndpoints && { endpoint }) })),
  );
  const outcome = ended ? 'ended' : tried ? 'failed' : symmetric.length > 0 ? 'symmetric' : 'no-endpoints';
  return {
    ...{ at: new Date(at).toISOString(), outcome },
    ...(ended && { why: ended }),
    ...(symmetric.length > 0 && { symmetric }),
    ...(all.length > 0 && { tried: all }),
  };
}
