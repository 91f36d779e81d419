import type { Peer } from '../../../contract/peer.ts';

/** What a phone dials: one connector, all peers that have an endpoint, or a connector that is gone. */
export type Dialled = Peer | 'all' | 'gone';

/**
 * What the user chose: the id of a connector, or `all`; null for the first connector. A connector is gone when another admin removed it
 * meanwhile, or when phones cannot dial it any more.
 */
export function findDialled(chosen: string | null, connectors: readonly Peer[]): Dialled {
  const [first] = connectors;
  if (chosen === 'all') return 'all';
  if (chosen === null) return first ?? 'all';
  return connectors.find(({ id }) => String(id) === chosen) ?? 'gone';
}
