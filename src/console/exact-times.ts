import { signal } from '@preact/signals';

const name = 'cpn exact times';

/** True for exact times with their time zone, not relative ones. The browser stores the choice. */
export const showsExactTimes = signal(readChoice());

export function toggleExactTimes(): void {
  showsExactTimes.value = !showsExactTimes.value;
  try {
    if (showsExactTimes.value) localStorage.setItem(name, 'true');
    else localStorage.removeItem(name);
  } catch {
    // Without storage for this page, the browser forgets the choice.
  }
}

function readChoice(): boolean {
  try {
    return localStorage.getItem(name) !== null;
  } catch {
    return false;
  }
}
