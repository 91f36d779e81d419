import { signal } from '@preact/signals';

/** The time in milliseconds, for what is shown relative to it. */
export const now = signal(Date.now());

const intervalMs = 10_000;

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, intervalMs);
document.addEventListener('visibilitychange', () => {
  now.value = Date.now();
});
