import type { Db } from '../tables.ts';

/** Records the identity of a removed peer, so that no other host can take it over. */
export async function insertFormerIdentity(db: Db, networkId: number, identity: string, now: string): Promise<void> {
  await db
    .insertInto('former_identities')
    .values({ network_id: networkId, identity_key: identity, removed_at: now })
    .onConflict((conflict) => conflict.columns(['network_id', 'identity_key']).doUpdateSet({ removed_at: now }))
    .execute();
}

export async function wasIdentityRemoved(db: Db, networkId: number, identity: string): Promise<boolean> {
  const row = await db
    .selectFrom('former_identities')
    .select('id')
    .where('network_id', '=', networkId)
    .where('identity_key', '=', identity)
    .executeTakeFirst();
  return row !== undefined;
}

/** Deletes the identities of peers that were removed before an instant. */
export async function deleteFormerIdentities(db: Db, before: string): Promise<void> {
  await db.deleteFrom('former_identities').where('removed_at', '<', before).execute();
}
