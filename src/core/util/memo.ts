/** The maximum number of entries of {@link memoizeByString}: a few megabytes. */
const maxEntries = 65_536;

/** Caches results: in a large network, each pass parses the same addresses. */
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

/** Caches only the last result. */
export function memoizeLast<T>(read: (text: string) => T): (text: string) => T {
  let last: { readonly text: string; readonly value: T } | null = null;
  return (text) => {
    if (last?.text !== text) last = { text, value: read(text) };
    return last.value;
  };
}
