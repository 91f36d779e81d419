import type { Insertable, Selectable } from 'kysely';
import { locksRows } from './database.ts';
import { readPage, type Slice, type StoredPage } from './page.ts';
import type { Db, Tables } from './tables.ts';

export type StoredKey = Selectable<Tables['enrollment_keys']>;

/** The keys of a network that were not revoked, used up and expired ones among them unless an instant says when they are to be of use. */
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

/** Revokes a key and returns it; undefined without such a key. The row stays, so that an enrolment is refused with the reason. */
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
 * Finds a key by its token. Until the transaction ends, all others who come with a key to the same network, or would change the
 * network or the key, wait. The network is held before its key: so those who remove a network with its keys hold them too.
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

/** Whether {@link takeUse} would take a use of a held key. */
export function hasUse({ uses, max_uses, expires_at, revoked_at }: StoredKey, now: string): boolean {
  return uses < max_uses && expires_at > now && revoked_at === null;
}

/** Takes one use of a key that still has one; all conditions stand in the one statement that takes it. */
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
