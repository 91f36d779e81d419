/** Memoisation of pure functions of strings. */

/** Entries that {@link memoizeByString} keeps: a few megabytes at most. */
const maxEntries = 65_536;

/** The same function, which caches its results: of a large network the same addresses are parsed in each pass. */
export function memoizeByString<K extends string, V>(read: (text: K) => V): (text: K) => V {
  const known = new Map<K, V>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    const value = read(text);
    if (known.size >= maxEntries) known.clear();
    known.set(text, value);
    return value;
  };
}

/** The same function, which caches its last result. */
export function memoizeLast<T>(read: (text: string) => T): (text: string) => T {
  let last: { readonly text: string; readonly value: T } | null = null;
  return (text) => {
    if (last?.text !== text) last = { text, value: read(text) };
    return last.value;
  };
}
