import { LRUCache } from 'lru-cache';

/**
 * Limits the entries by size: the option `max` of lru-cache would allocate all slots in advance.
 */
export function createBoundedCache<Key extends {}, Value extends {}>(most: number): LRUCache<Key, Value> {
  return new LRUCache({ maxSize: most, sizeCalculation: () => 1 });
}
