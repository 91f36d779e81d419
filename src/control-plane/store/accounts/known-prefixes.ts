import { countRows } from '../database.ts';
import type { Db } from '../tables.ts';

export async function countPrefixes(db: Db, userId: number): Promise<number> {
  return countRows(db.selectFrom('known_prefixes').where('user_id', '=', userId));
}

/** Records a use of a known prefix; false if the prefix is not known. */
export async function recordPrefixUse(db: Db, userId: number, prefix: string, now: string): Promise<boolean> {
  const used = await db
    .updateTable('known_prefixes')
    .set({ last_used_at: now })
    .where('user_id', '=', userId)
    .where('prefix', '=', prefix)
    .returning('prefix')
    .executeTakeFirst();
  return used !== undefined;
}

export async function insertPrefix(db: Db, userId: number, prefix: string, now: string): Promise<void> {
  await db.insertInto('known_prefixes').values({ user_id: userId, prefix, last_used_at: now }).execute();
}

/** Deletes the least recently used prefixes of a user. */
export async function deleteOldestPrefixes(db: Db, userId: number, count: number): Promise<void> {
  const oldest = await db
    .selectFrom('known_prefixes')
    .select('prefix')
    .where('user_id', '=', userId)
    .orderBy('last_used_at')
    .orderBy('prefix')
    .limit(count)
    .execute();
  const prefixes = oldest.map(({ prefix }) => prefix);
  await db.deleteFrom('known_prefixes').where('user_id', '=', userId).where('prefix', 'in', prefixes).execute();
}
