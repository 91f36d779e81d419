import type { Insertable, Selectable } from 'kysely';
import type { Db, Tables } from './tables.ts';

export type StoredEntry = Selectable<Tables['audit_entries']>;

export type NewEntry = Insertable<Tables['audit_entries']>;

export async function insertEntry(db: Db, entry: NewEntry): Promise<void> {
  await db.insertInto('audit_entries').values(entry).execute();
}

/** The newest entries of an actor since an instant. */
export async function listEntriesOfActor(
  db: Db,
  { actor_kind, actor_id = null }: Pick<NewEntry, 'actor_kind' | 'actor_id'>,
  since: string,
  limit: number,
): Promise<Pick<StoredEntry, 'id' | 'action' | 'details'>[]> {
  return db
    .selectFrom('audit_entries')
    .select(['id', 'action', 'details'])
    .where('actor_kind', '=', actor_kind)
    .where('actor_id', '=', actor_id)
    .where('at', '>=', since)
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
}

export async function replaceDetails(db: Db, id: number, details: string): Promise<void> {
  await db.updateTable('audit_entries').set({ details }).where('id', '=', id).execute();
}

/** The newest entries of an organization, or those before the one with the id `before`. */
export async function listEntries(
  db: Db,
  organizationId: number,
  { before, limit }: { before?: number | undefined; limit: number },
): Promise<StoredEntry[]> {
  const query = db.selectFrom('audit_entries').selectAll().where('organization_id', '=', organizationId);
  const page = before === undefined ? query : query.where('id', '<', before);
  return page.orderBy('id', 'desc').limit(limit).execute();
}

/** What decides whether an entry is kept. */
export type EntryAge = Pick<StoredEntry, 'id' | 'at' | 'action'>;

/** The newest entries of all organizations, or those before the one with the id `before`. */
export async function listAges(db: Db, before: number | null, limit: number): Promise<EntryAge[]> {
  const query = db.selectFrom('audit_entries').select(['id', 'at', 'action']);
  const page = before === null ? query : query.where('id', '<', before);
  return page.orderBy('id', 'desc').limit(limit).execute();
}

/** Removes of the entries from one id to another those from before an instant, or those of an action. */
export async function deleteEntries(
  db: Db,
  { from, to }: { readonly from: number; readonly to: number },
  which: { readonly before: string } | { readonly action: string },
): Promise<void> {
  const range = db.deleteFrom('audit_entries').where('id', '>=', from).where('id', '<=', to);
  const those = 'before' in which ? range.where('at', '<', which.before) : range.where('action', '=', which.action);
  await those.execute();
}
