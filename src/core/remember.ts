/** Entries of what is remembered: a few megabytes at most. */
const most = 65_536;

/** The same function of a text, which remembers what it gave: of a large network the same addresses are asked about again and again. */
export function remember<K extends string, V>(read: (text: K) => V): (text: K) => V {
  const known = new Map<K, V>();
  return (text) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    const value = read(text);
    if (known.size >= most) known.clear();
    known.set(text, value);
    return value;
  };
}
