import type { Db } from './tables.ts';

/** Remembers the identity of a peer that is removed, so that no other host takes it for its own. */
export async function insertFormerIdentity(db: Db, networkId: number, identity: string, now: string): Promise<void> {
  await db
    .insertInto('former_identities')
    .values({ network_id: networkId, identity_key: identity, removed_at: now })
    .onConflict((conflict) => conflict.columns(['network_id', 'identity_key']).doUpdateSet({ removed_at: now }))
    .execute();
}

/** True where a peer with this identity was removed from the network. */
export async function wasIdentityRemoved(db: Db, networkId: number, identity: string): Promise<boolean> {
  const row = await db
    .selectFrom('former_identities')
    .select('id')
    .where('network_id', '=', networkId)
    .where('identity_key', '=', identity)
    .executeTakeFirst();
  return row !== undefined;
}

/** Forgets the identities of peers that were removed before an instant. */
export async function deleteFormerIdentities(db: Db, before: string): Promise<void> {
  await db.deleteFrom('former_identities').where('removed_at', '<', before).execute();
}
