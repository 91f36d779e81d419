import type { NetworkStatus } from '../../app/status.ts';

/** Seconds for which a look at the networks is as good as a new one: whoever asks often starts no more processes. */
const goodFor = 2;

/**
 * Looks that share what they find: there is never more than one at a time.
 *
 * @param look what is shared
 * @param monotonic seconds of a clock that nobody sets
 */
export function shareLooks(look: () => Promise<NetworkStatus[]>, monotonic: () => number): typeof look {
  let shared: Promise<NetworkStatus[]> | null = null;
  let until = 0;
  return () => {
    if (shared !== null && monotonic() < until) return shared;
    until = Number.POSITIVE_INFINITY;
    shared = look();
    const settle = (seconds: number) => () => {
      until = monotonic() + seconds;
    };
    shared.then(settle(goodFor), settle(0));
    return shared;
  };
}
