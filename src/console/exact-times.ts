import { signal } from '@preact/signals';

const name = 'cpn exact times';

/** Whether times are shown exact, with their time zone, in place of relative to now. This browser keeps the choice. */
export const showsExactTimes = signal(readChoice());

export function toggleExactTimes(): void {
  showsExactTimes.value = !showsExactTimes.value;
  try {
    if (showsExactTimes.value) localStorage.setItem(name, 'true');
    else localStorage.removeItem(name);
  } catch {
    // A browser without storage for this page forgets the choice.
  }
}

function readChoice(): boolean {
  try {
    return localStorage.getItem(name) !== null;
  } catch {
    return false;
  }
}
