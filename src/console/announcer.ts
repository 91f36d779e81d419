import { signal } from '@preact/signals';

/** What a screen reader says next, and the page shows for a while. */
export const announcement = signal('');

let timer: ReturnType<typeof setTimeout> | undefined;

/** Reports a change that the user caused. */
export function announce(text: string): void {
  clearTimeout(timer);
  announcement.value = text;
  timer = setTimeout(() => {
    announcement.value = '';
  }, 6000);
}
