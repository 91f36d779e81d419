import type { Insertable, Selectable } from 'kysely';
import { locksRows } from './database.ts';
import { readPage, type Slice, type StoredPage } from './page.ts';
import type { Db, Tables } from './tables.ts';

export type StoredKey = Selectable<Tables['enrollment_keys']>;

/** Lists keys that are not revoked, but no keys of users. `usableAt` selects usable ones. */
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
    .where('user_id', 'is', null)
    .where('revoked_at', 'is', null);
  const listed = usableAt === null ? keys : keys.whereRef('uses', '<', 'max_uses').where('expires_at', '>', usableAt);
  return readPage(db, listed, slice);
}

export async function insertKey(db: Db, key: Insertable<Tables['enrollment_keys']>): Promise<StoredKey> {
  return db.insertInto('enrollment_keys').values(key).returningAll().executeTakeFirstOrThrow();
}

/**
 * Keeps the row, so that a refused enrolment gets the reason. Undefined if there is no such key.
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
 * Until the transaction ends, other enrolments and changes of the network or key wait. Locks the
 * network before its key, in the order of a deletion of the network with its keys.
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

/** Checks all conditions in one statement: concurrent enrolments cannot exceed the limit. */
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

/** Counts a user's usable keys in a network. Deletes those that expired unused. */
export async function countOwnKeys(db: Db, networkId: number, userId: number, now: string): Promise<number> {
  await db
    .deleteFrom('enrollment_keys')
    .where('network_id', '=', networkId)
    .where('user_id', '=', userId)
    .where('uses', '=', 0)
    .where('expires_at', '<=', now)
    .execute();
  const { count } = await db
    .selectFrom('enrollment_keys')
    .select(({ fn }) => fn.countAll<number | string>().as('count'))
    .where('network_id', '=', networkId)
    .where('user_id', '=', userId)
    .where('uses', '=', 0)
    .where('revoked_at', 'is', null)
    .executeTakeFirstOrThrow();
  return Number(count);
}
