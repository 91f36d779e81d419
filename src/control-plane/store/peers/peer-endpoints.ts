import type { Selectable } from 'kysely';
import type { Db, Tables } from '../tables.ts';

export type StoredEndpoints = Selectable<Tables['peer_endpoints']>;

/** Stores what a source states about a peer, and replaces what it stated before. */
export async function saveEndpoints(db: Db, row: StoredEndpoints): Promise<void> {
  const { peer_id: _peer, source: _source, ...fields } = row;
  await db
    .insertInto('peer_endpoints')
    .values(row)
    .onConflict((conflict) => conflict.columns(['peer_id', 'source']).doUpdateSet(fields))
    .execute();
}

/** Lists what is stated about these peers since an instant, by source. */
export async function listEndpointsOf(db: Db, peers: readonly number[], since: string): Promise<StoredEndpoints[]> {
  return db
    .selectFrom('peer_endpoints')
    .selectAll()
    .where('peer_id', 'in', peers)
    .where('at', '>=', since)
    .orderBy('peer_id')
    .orderBy('source')
    .execute();
}

/**
 * Returns those of the endpoints that other peers than this one have in the map, or that connectors
 * observe of them.
 */
export async function findSocketsOfOthers(
  db: Db,
  network: number,
  peer: number,
  endpoints: readonly string[],
): Promise<readonly string[]> {
  if (endpoints.length === 0) return [];
  const listed = db.selectFrom('peers').select('endpoint').where('id', '!=', peer);
  const observed = db.selectFrom('peer_endpoints').select('endpoint').where('peer_id', '!=', peer);
  const rows = await listed
    .where('network_id', '=', network)
    .where('endpoint', 'in', endpoints)
    .union(observed.where('network_id', '=', network).where('endpoint', 'in', endpoints))
    .execute();
  return rows.flatMap(({ endpoint }) => endpoint ?? []);
}
