/** The tokens of a source at a time. */
interface Bucket {
  tokens: number;
  at: number;
}

interface Limits {
  readonly perSecond: number;
  readonly burst: number;
  readonly mostSources: number;
}

const usual: Limits = { perSecond: 200, burst: 400, mostSources: 1024 };

/**
 * Limits the queries per source address with a token bucket each. The result takes a token, and is
 * false without one. Further sources than `mostSources` share one bucket: to forget a bucket would
 * give its source a new burst.
 *
 * @param now milliseconds of a monotonic clock
 */
export function createQueryLimit(
  now: () => number = () => performance.now(),
  { perSecond, burst, mostSources }: Limits = usual,
): (source: string) => boolean {
  const buckets = new Map<string, Bucket>();
  const shared: Bucket = { tokens: burst, at: now() };
  const fullAfterMs = (burst / perSecond) * 1000;
  let sweptAt = now();

  /** Deletes buckets that are full again, at most once a second. */
  function sweep(time: number): void {
    if (time - sweptAt < 1000) return;
    sweptAt = time;
    for (const [source, { at }] of buckets) if (time - at >= fullAfterMs) buckets.delete(source);
  }

  function bucketOf(source: string, time: number): Bucket {
    const known = buckets.get(source);
    if (known !== undefined) return known;
    if (buckets.size >= mostSources) sweep(time);
    if (buckets.size >= mostSources) return shared;
    const added = { tokens: burst, at: time };
    buckets.set(source, added);
    return added;
  }

  return (source) => {
    const time = now();
    const bucket = bucketOf(source, time);
    bucket.tokens = Math.min(burst, bucket.tokens + ((time - bucket.at) * perSecond) / 1000);
    bucket.at = time;
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  };
}
