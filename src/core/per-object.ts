/**
 * What `make` gives for an object, made once for each: for what is dear to work out, of data that never changes. It goes with the
 * object.
 */
export function perObject<K extends object, V>(make: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, { readonly value: V }>();
  return (key) => {
    const entry = known.get(key) ?? { value: make(key) };
    known.set(key, entry);
    return entry.value;
  };
}
