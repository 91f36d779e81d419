import { effect, signal } from '@preact/signals';
import type { Phone } from './enroll-phone.ts';

/** The enrolled phone whose private key is on the screen. It outlives the page and the session: only a click takes it away. */
export const keptPhone = signal<Phone | null>(null);

/** Whether a phone is being enrolled, whose key is in this page alone. Its page may be left meanwhile. */
const isEnrolling = signal(false);

/** Enrols a phone and keeps its key on the page, which shows one key. @throws Error while another phone is enrolled or kept */
export async function keepPhone(enroll: () => Promise<Phone>): Promise<void> {
  if (isEnrolling.value) throw new Error('Another phone is being enrolled. Wait until its key is shown.');
  if (keptPhone.value !== null) throw new Error('The key of another phone is shown. Close it first.');
  isEnrolling.value = true;
  try {
    keptPhone.value = await enroll();
  } finally {
    isEnrolling.value = false;
  }
}

/** The browser prompts before it leaves the console. */
const hold = (event: Event) => event.preventDefault();

effect(() => {
  if (keptPhone.value === null && !isEnrolling.value) removeEventListener('beforeunload', hold);
  else addEventListener('beforeunload', hold);
});
