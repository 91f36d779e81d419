import type { Peer } from '../../../contract/peer.ts';

/** What a phone dials: a connector, all peers with an endpoint, or a connector that is gone. */
export type Dialled = Peer | 'all' | 'gone';

/**
 * Resolves the user's choice: a connector's id, `all`, or null for the first connector. A connector
 * is gone if another admin removed it meanwhile, or if phones can no longer dial it.
 */
export function findDialled(chosen: string | null, connectors: readonly Peer[]): Dialled {
  const [first] = connectors;
  if (chosen === 'all') return 'all';
  if (chosen === null) return first ?? 'all';
  return connectors.find(({ id }) => String(id) === chosen) ?? 'gone';
}
