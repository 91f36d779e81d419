import type { ExpressionBuilder } from 'kysely';
import { isLost } from './health.ts';
import type { Db, Tables } from './tables.ts';

/** Stores whether a host last reported that it uses the named relay. Needs its stored report. */
export async function saveFollowing(db: Db, peer: number, follows: boolean): Promise<void> {
  await db
    .updateTable('peer_health')
    .set({ follows_relay: follows ? 1 : 0 })
    .where('peer_id', '=', peer)
    .execute();
}

/** Lists hosts of a network whose entry in the map differs from their last report. */
export async function listChangedFollowing(db: Db, network: number, limit: number): Promise<number[]> {
  const rows = await db
    .selectFrom('peers')
    .innerJoin('peer_health', 'peer_health.peer_id', 'peers.id')
    .select('peers.id')
    .where('peers.network_id', '=', network)
    .whereRef('peers.follows_relay', '!=', 'peer_health.follows_relay')
    .orderBy('peers.id')
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/** Sets the entries of these peers in the map to their last report. */
export async function applyFollowing(db: Db, network: number, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return;
  await db
    .updateTable('peers')
    .set(({ fn, selectFrom }) => ({
      follows_relay: fn.coalesce(
        selectFrom('peer_health').select('follows_relay').whereRef('peer_id', '=', 'peers.id'),
        ({ lit }) => lit(0),
      ),
    }))
    .where('network_id', '=', network)
    .where('id', 'in', ids)
    .execute();
}

/** Discards what hosts stated that are not online, except one. Returns the peers that changed. */
export async function clearFollowing(db: Db, network: number, except: number | null): Promise<number[]> {
  const isOnline = (eb: ExpressionBuilder<Tables, 'peer_health'>) =>
    eb.and([eb('announced', '=', 'online'), eb.not(isLost(eb))]);
  const online = db.selectFrom('peer_health').select('peer_id').where('network_id', '=', network).where(isOnline);
  const changed = await db
    .updateTable('peers')
    .set({ follows_relay: 0 })
    .where('network_id', '=', network)
    .where('follows_relay', '=', 1)
    .where('id', 'not in', online)
    .where('id', 'is distinct from', except)
    .returning('id')
    .execute();
  await db
    .updateTable('peer_health')
    .set({ follows_relay: 0 })
    .where('network_id', '=', network)
    .where('follows_relay', '=', 1)
    .where('peer_id', 'not in', online)
    .where('peer_id', 'is distinct from', except)
    .execute();
  return changed.map(({ id }) => id);
}
