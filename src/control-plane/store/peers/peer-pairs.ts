import type { Selectable } from 'kysely';
import type { Db, Tables } from '../tables.ts';

export type StoredPair = Selectable<Tables['peer_pairs']>;

/** Lists all pairs of a network. */
export async function listPairs(db: Db, network: number): Promise<StoredPair[]> {
  return db.selectFrom('peer_pairs').selectAll().where('network_id', '=', network).execute();
}

/** Lists the pairs of a network that include one of these peers. */
export async function listPairsOf(db: Db, network: number, peers: readonly number[]): Promise<StoredPair[]> {
  return db
    .selectFrom('peer_pairs')
    .selectAll()
    .where('network_id', '=', network)
    .where((eb) => eb.or([eb('a', 'in', peers), eb('b', 'in', peers)]))
    .orderBy('a')
    .orderBy('b')
    .execute();
}

export async function savePair(db: Db, row: StoredPair): Promise<void> {
  const { a: _a, b: _b, ...fields } = row;
  await db
    .insertInto('peer_pairs')
    .values(row)
    .onConflict((conflict) => conflict.columns(['a', 'b']).doUpdateSet(fields))
    .execute();
}

export interface PathAges {
  /** Starts before this instant count no longer. */
  readonly starts: string;
  /** Older statements are of no use. Nor are pairs that could have begun again before it. */
  readonly statements: string;
  /** Pairs are kept no longer, even with a direct path. */
  readonly direct: string;
}

/** Deletes the rows of a network that are too old. */
export async function prunePaths(db: Db, network: number, { starts, statements, direct }: PathAges): Promise<void> {
  await db.deleteFrom('path_starts').where('network_id', '=', network).where('at', '<', starts).execute();
  await db.deleteFrom('peer_endpoints').where('network_id', '=', network).where('at', '<', statements).execute();
  await db
    .deleteFrom('peer_pairs')
    .where('network_id', '=', network)
    .where((eb) =>
      eb.or([eb.and([eb('state', '!=', 'direct'), eb('next_at', '<', statements)]), eb('at', '<', direct)]),
    )
    .execute();
}

/** Counts the starts of a network since an instant, by address. */
export async function countStarts(
  db: Db,
  network: number,
  addresses: readonly string[],
  since: string,
): Promise<ReadonlyMap<string, number>> {
  if (addresses.length === 0) return new Map();
  const rows = await db
    .selectFrom('path_starts')
    .select(({ fn }) => ['address', fn.sum<number | string>('starts').as('starts')])
    .where('network_id', '=', network)
    .where('address', 'in', addresses)
    .where('at', '>', since)
    .groupBy('address')
    .execute();
  return new Map(rows.map(({ address, starts }) => [address, Number(starts)]));
}

export async function insertStarts(
  db: Db,
  network: number,
  starts: ReadonlyMap<string, number>,
  at: string,
): Promise<void> {
  if (starts.size === 0) return;
  const rows = [...starts].map(([address, count]) => ({ network_id: network, address, starts: count, at }));
  await db.insertInto('path_starts').values(rows).execute();
}
