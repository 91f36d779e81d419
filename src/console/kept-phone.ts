import { effect, signal } from '@preact/signals';
import type { Phone } from './enroll-phone.ts';

/** The enrolled phone with its private key. Outlives page and session, until the user closes it. */
export const keptPhone = signal<Phone | null>(null);

/** True while a phone is being enrolled. Its key is only in this page, which the user may leave. */
const isEnrolling = signal(false);

/** Enrols a phone and keeps its key. @throws Error while another phone is enrolled or kept */
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

/** Makes the browser prompt before it leaves the console. */
const hold = (event: Event) => event.preventDefault();

effect(() => {
  if (keptPhone.value === null && !isEnrolling.value) removeEventListener('beforeunload', hold);
  else addEventListener('beforeunload', hold);
});
