import { LRUCache } from 'lru-cache';

/** A cache of the last `most` entries. With `max`, lru-cache would allocate room for all of them in advance, and fill it. */
export function createBoundedCache<Key extends {}, Value extends {}>(most: number): LRUCache<Key, Value> {
  return new LRUCache({ maxSize: most, sizeCalculation: () => 1 });
}
