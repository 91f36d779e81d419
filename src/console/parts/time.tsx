import type { JSX } from 'preact';
import { formatAgo, formatExact } from '../logic/text/time.ts';
import { now } from '../now.ts';

/** An instant relative to now. The pointer on it shows the exact one with its time zone. */
export function Time({ at }: { readonly at: string }): JSX.Element {
  return (
    <time dateTime={at} title={formatExact(at)}>
      {formatAgo(at, Math.max(now.value, Date.now()))}
    </time>
  );
}
