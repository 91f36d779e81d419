import { effect, signal } from '@preact/signals';
import type { Phone } from './enroll-phone.ts';

/** The enrolled phone whose private key is on the screen. It outlives the page and the session: only a click takes it away. */
export const keptPhone = signal<Phone | null>(null);

/** The browser prompts before it leaves the console. */
const hold = (event: Event) => event.preventDefault();

effect(() => {
  if (keptPhone.value === null) removeEventListener('beforeunload', hold);
  else addEventListener('beforeunload', hold);
});
