// The console bundles this file, which imports nothing.

/** What the rank of a connector depends on, apart from its health. */
export interface RankedConnector {
  readonly id: number | string;
  /** 0 where it is absent. */
  readonly priority?: number | undefined;
  /** ISO 8601, or milliseconds since 1970. Connectors without it come after those with it. */
  readonly serving_since?: string | number | null | undefined;
}

/**
 * The order in which hosts prefer connectors of the same health, the same on every host, at the
 * control plane and in the console:
 * 1. The highest priority.
 * 2. The longest time in service. A newcomer therefore ranks last, and takes no route from a
 *    connector in service.
 * 3. The lowest id.
 */
export function compareConnectors(one: RankedConnector, other: RankedConnector): number {
  return (
    (other.priority ?? 0) - (one.priority ?? 0) ||
    servingSince(one) - servingSince(other) ||
    comparePeerIds(one.id, other.id)
  );
}

function servingSince({ serving_since: since }: RankedConnector): number {
  return typeof since === 'string' ? Date.parse(since) : (since ?? Number.MAX_SAFE_INTEGER);
}

/** Orders ids identically on every host: numbers by size, before strings by code unit. */
export function comparePeerIds(a: number | string, b: number | string): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a !== typeof b) return typeof a === 'number' ? -1 : 1;
  return a < b ? -1 : a > b ? 1 : 0;
}
