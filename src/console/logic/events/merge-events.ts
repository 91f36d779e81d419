import type { Event } from '../../../contract/event.ts';

/** The page keeps as many; the control plane has more. */
export const mostEvents = 1000;

/** The events of a page with those that came later. */
export function mergeEvents(before: readonly Event[], came: readonly Event[]): readonly Event[] {
  const [first] = came;
  if (first === undefined) return before;
  // A database that was restored counts from a lower number, and sends its newest ones.
  const isOther = first.id <= (before.at(-1)?.id ?? 0);
  return (isOther ? came : [...before, ...came]).slice(-mostEvents);
}
