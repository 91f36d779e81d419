import type { Event } from '../../../contract/event.ts';

/** The maximum on a page. The control plane keeps more. */
export const mostEvents = 1000;

/** Adds later events to the events of a page. */
export function mergeEvents(before: readonly Event[], came: readonly Event[]): readonly Event[] {
  const [first] = came;
  if (first === undefined) return before;
  // A restored database counts from a lower id, and sends its newest events.
  const isOther = first.id <= (before.at(-1)?.id ?? 0);
  return (isOther ? came : [...before, ...came]).slice(-mostEvents);
}
