import { LRUCache } from 'lru-cache';

/**
 * A cache of the last `most` entries. The option `max` of lru-cache would allocate and fill all
 * slots in advance.
 */
export function createBoundedCache<Key extends {}, Value extends {}>(most: number): LRUCache<Key, Value> {
  return new LRUCache({ maxSize: most, sizeCalculation: () => 1 });
}
