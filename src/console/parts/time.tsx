import type { JSX } from 'preact';
import { showsExactTimes } from '../exact-times.ts';
import { formatAgo, formatExact } from '../logic/text/time.ts';
import { now } from '../now.ts';

/** An instant relative to now, or exact if the user chose so. The pointer on it shows the exact one with its time zone. */
export function Time({ at }: { readonly at: string }): JSX.Element {
  const exact = formatExact(at);
  if (showsExactTimes.value) {
    return (
      <time class="exact" dateTime={at}>
        {exact}
      </time>
    );
  }
  return (
    <time dateTime={at} title={exact}>
      {formatAgo(at, Math.max(now.value, Date.now()))}
    </time>
  );
}
