import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { formatAgo, formatExact } from '../logic/text/format.ts';

/** The current time in milliseconds, for relative times. */
export const now = signal(Date.now());

const intervalMs = 10_000;

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, intervalMs);
document.addEventListener('visibilitychange', () => {
  now.value = Date.now();
});

const choiceInStorage = 'cpn exact times';

/** True for exact times with their time zone, not relative ones. The browser stores the choice. */
export const showsExactTimes = signal(readChoice());

export function toggleExactTimes(): void {
  showsExactTimes.value = !showsExactTimes.value;
  try {
    if (showsExactTimes.value) localStorage.setItem(choiceInStorage, 'true');
    else localStorage.removeItem(choiceInStorage);
  } catch {
    // Without storage for this page, the browser forgets the choice.
  }
}

function readChoice(): boolean {
  try {
    return localStorage.getItem(choiceInStorage) !== null;
  } catch {
    return false;
  }
}

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
