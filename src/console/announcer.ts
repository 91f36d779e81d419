import { signal } from '@preact/signals';

/** Text for screen readers, which the page also shows for some seconds. */
export const announcement = signal('');

let timer: ReturnType<typeof setTimeout> | undefined;

export function announce(text: string): void {
  clearTimeout(timer);
  announcement.value = text;
  timer = setTimeout(() => {
    announcement.value = '';
  }, 6000);
}
