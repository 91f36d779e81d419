/**
 * Gives the last value again where a new one says the same: whoever works something out of a value by its identity then has nothing to
 * do.
 */
export function keepSame<T>(isSame: (one: T, other: T) => boolean): (value: T) => T {
  let last: { readonly value: T } | null = null;
  return (value) => {
    if (last === null || !isSame(last.value, value)) last = { value };
    return last.value;
  };
}

/** What `read` makes of a text; of the very text that it read last, the very value. */
export function rememberLast<T>(read: (text: string) => T): (text: string) => T {
  let last: { readonly text: string; readonly value: T } | null = null;
  return (text) => {
    if (last?.text !== text) last = { text, value: read(text) };
    return last.value;
  };
}

/** True when both have the same members in the same order. */
export function sameList(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one === other || (one.length === other.length && one.every((each, place) => each === other[place]));
}
