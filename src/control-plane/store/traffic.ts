import type { Db } from './tables.ts';

export async function findTraffic(db: Db, peer: number): Promise<string | null> {
  const query = db.selectFrom('peer_traffic').select('history').where('peer_id', '=', peer);
  return (await query.executeTakeFirst())?.history ?? null;
}

export async function listTraffic(
  db: Db,
  network: number,
): Promise<readonly { readonly peer_id: number; readonly history: string }[]> {
  return db
    .selectFrom('peer_traffic')
    .innerJoin('peers', 'peers.id', 'peer_traffic.peer_id')
    .select(['peer_traffic.peer_id', 'peer_traffic.history'])
    .where('peers.network_id', '=', network)
    .where('peers.suspended_at', 'is', null)
    .where('peers.expired', '=', 0)
    .execute();
}

/** Stores a peer's traffic. Does nothing if the peer was removed in the meantime. */
export async function saveTraffic(db: Db, peer: number, history: string, at: string): Promise<void> {
  await db
    .insertInto('peer_traffic')
    .columns(['peer_id', 'history', 'updated_at'])
    .expression((eb) =>
      eb
        .selectFrom('peers')
        .select(['id', eb.val(history).as('history'), eb.val(at).as('updated_at')])
        .where('id', '=', peer),
    )
    .onConflict((conflict) => conflict.column('peer_id').doUpdateSet({ history, updated_at: at }))
    .execute();
}

/** Deletes the traffic of peers without a report since an instant. For null, deletes all of it. */
export async function pruneTraffic(db: Db, before: string | null): Promise<void> {
  const all = db.deleteFrom('peer_traffic');
  await (before === null ? all : all.where('updated_at', '<', before)).execute();
}
