import { type Selectable, sql } from 'kysely';
import type { Revision } from './changes.ts';
import type { Db, Tables } from './tables.ts';

/** Increments the revision of a network's health. Until the transaction ends, others that do so wait. */
export async function reviseHealth(db: Db, network: number, nonce: string): Promise<void> {
  await db
    .insertInto('network_health')
    .values({ network_id: network, revision: 1, nonce, routes: '{}' })
    .onConflict((conflict) =>
      conflict.column('network_id').doUpdateSet((eb) => ({ revision: eb('network_health.revision', '+', 1), nonce })),
    )
    .execute();
}

const noHealth = { revision: 0, nonce: 'none', routes: '{}' };

/** The revision of a network's health, and what the last events stated of its routes. */
export async function readNetworkHealth(db: Db, network: number): Promise<Revision & { readonly routes: string }> {
  const query = db.selectFrom('network_health').select(['revision', 'nonce', 'routes']);
  return (await query.where('network_id', '=', network).executeTakeFirst()) ?? noHealth;
}

export type StoredHealth = Selectable<Tables['peer_health']>;

export async function listPeerHealth(db: Db, network: number): Promise<StoredHealth[]> {
  return db.selectFrom('peer_health').selectAll().where('network_id', '=', network).execute();
}

export async function findPeerHealth(db: Db, peer: number): Promise<StoredHealth | undefined> {
  return db.selectFrom('peer_health').selectAll().where('peer_id', '=', peer).executeTakeFirst();
}

/** Sets fields of a peer's health. One that was removed meanwhile has none. */
export async function savePeerHealth(
  db: Db,
  peer: number,
  fields: Partial<Omit<StoredHealth, 'peer_id' | 'network_id'>>,
): Promise<void> {
  const names = Object.keys(fields) as (keyof typeof fields)[];
  await db
    .insertInto('peer_health')
    .columns(['peer_id', 'network_id', ...names])
    .expression((eb) =>
      eb
        .selectFrom('peers')
        .select(['id', 'network_id', ...names.map((name) => sql<string | null>`${fields[name] ?? null}`.as(name))])
        .where('id', '=', peer),
    )
    .onConflict((conflict) => conflict.column('peer_id').doUpdateSet(fields))
    .execute();
}
