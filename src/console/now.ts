import { signal } from '@preact/signals';

/** The current time in milliseconds, for relative times. */
export const now = signal(Date.now());

const intervalMs = 10_000;

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, intervalMs);
document.addEventListener('visibilitychange', () => {
  now.value = Date.now();
});
