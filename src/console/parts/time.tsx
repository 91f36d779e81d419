import type { JSX } from 'preact';
import { showsExactTimes } from '../exact-times.ts';
import { formatAgo, formatExact } from '../logic/text/time.ts';
import { now } from '../now.ts';

/** An instant, relative or exact by the user's choice. Hovering shows it exactly, with its zone. */
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
