import type { ExpressionBuilder } from 'kysely';
import { isLost } from './health.ts';
import type { Db, Tables } from './tables.ts';

/** The fields of the map that a host states of itself, at enrolment and in each report. */
export const statedFields = ['follows_relay', 'enforces_rules'] as const;
export type Statements = Readonly<Record<(typeof statedFields)[number], 0 | 1>>;

/** Stores what a host last stated. Needs its stored report. */
export async function saveStatements(db: Db, peer: number, statements: Statements): Promise<void> {
  await db.updateTable('peer_health').set(statements).where('peer_id', '=', peer).execute();
}

/** Lists hosts of a network whose entry in the map differs from their last report. */
export async function listChangedStatements(db: Db, network: number, limit: number): Promise<number[]> {
  const rows = await db
    .selectFrom('peers')
    .innerJoin('peer_health', 'peer_health.peer_id', 'peers.id')
    .select('peers.id')
    .where('peers.network_id', '=', network)
    .where((eb) => eb.or(statedFields.map((field) => eb(`peers.${field}`, '!=', eb.ref(`peer_health.${field}`)))))
    .orderBy('peers.id')
    .limit(limit)
    .execute();
  return rows.map(({ id }) => id);
}

/** Sets the entries of these peers in the map to their last report. */
export async function applyStatements(db: Db, network: number, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return;
  await db
    .updateTable('peers')
    .set(({ fn, selectFrom }) => {
      const reported = (field: (typeof statedFields)[number]) =>
        fn.coalesce(
          selectFrom('peer_health').select(`peer_health.${field}`).whereRef('peer_id', '=', 'peers.id'),
          ({ lit }) => lit(0),
        );
      return { follows_relay: reported('follows_relay'), enforces_rules: reported('enforces_rules') };
    })
    .where('network_id', '=', network)
    .where('id', 'in', ids)
    .execute();
}

/** Discards the use of the relay by hosts that are not online, but one. Returns changed peers. */
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
