import type { Insertable, Selectable } from 'kysely';
import { locksRows } from './database.ts';
import { readPage, type Slice, type StoredPage } from './page.ts';
import type { Db, Tables } from './tables.ts';

export type StoredKey = Selectable<Tables['enrollment_keys']>;

/**
 * Lists the keys of a network that are not revoked. With `usableAt`, keys that are used up or
 * expired at that instant are left out.
 */
export async function listKeys(
  db: Db,
  networkId: number,
  usableAt: string | null,
  slice: Slice,
): Promise<StoredPage<StoredKey>> {
  const keys = db
    .selectFrom('enrollment_keys')
    .selectAll()
    .where('network_id', '=', networkId)
    .where('revoked_at', 'is', null);
  const listed = usableAt === null ? keys : keys.whereRef('uses', '<', 'max_uses').where('expires_at', '>', usableAt);
  return readPage(db, listed, slice);
}

export async function insertKey(db: Db, key: Insertable<Tables['enrollment_keys']>): Promise<StoredKey> {
  return db.insertInto('enrollment_keys').values(key).returningAll().executeTakeFirstOrThrow();
}

/**
 * Revokes a key and returns it; undefined if there is no such key. The row stays, so that a refused
 * enrolment gets the reason.
 */
export async function revokeKey(db: Db, networkId: number, id: number, now: string): Promise<StoredKey | undefined> {
  return db
    .updateTable('enrollment_keys')
    .set({ revoked_at: now })
    .where('id', '=', id)
    .where('network_id', '=', networkId)
    .where('revoked_at', 'is', null)
    .returningAll()
    .executeTakeFirst();
}

/**
 * Finds a key by its token. Until the transaction ends, other enrolments to the same network and
 * changes of the network or the key wait. The network is locked before its key, in the same order
 * as a deletion of the network with its keys.
 */
export async function lockKey(db: Db, tokenHash: string): Promise<StoredKey | undefined> {
  const withToken = db.selectFrom('enrollment_keys').where('token_hash', '=', tokenHash);
  if (!locksRows(db)) return withToken.selectAll().executeTakeFirst();
  await db
    .selectFrom('networks')
    .select('id')
    .where('id', 'in', withToken.select('network_id'))
    .forNoKeyUpdate()
    .execute();
  return withToken.selectAll().forNoKeyUpdate().executeTakeFirst();
}

/** True if {@link takeUse} would take a use of a locked key. */
export function hasUse({ uses, max_uses, expires_at, revoked_at }: StoredKey, now: string): boolean {
  return uses < max_uses && expires_at > now && revoked_at === null;
}

/**
 * Takes one use of a key. The statement checks all conditions, so that concurrent enrolments cannot
 * exceed the limit. False if the key has no use left.
 */
export async function takeUse(db: Db, id: number, now: string): Promise<boolean> {
  const row = await db
    .updateTable('enrollment_keys')
    .set((eb) => ({ uses: eb('uses', '+', 1) }))
    .where('id', '=', id)
    .whereRef('uses', '<', 'max_uses')
    .where('expires_at', '>', now)
    .where('revoked_at', 'is', null)
    .returning('id')
    .executeTakeFirst();
  return row !== undefined;
}
