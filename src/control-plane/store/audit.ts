import { setImmediate } from 'node:timers/promises';
import { type Insertable, type Selectable, type SelectQueryBuilder, sql } from 'kysely';
import { searchWords } from '../../contract/audit.ts';
import { countRows, locksRows } from './database.ts';
import { maxCounted, readPage, type Slice, type StoredPage } from './page.ts';
import type { Db, Tables } from './tables.ts';

export type StoredEntry = Selectable<Tables['audit_entries']>;

export type NewEntry = Insertable<Tables['audit_entries']>;

export async function insertEntry(db: Db, entry: NewEntry): Promise<void> {
  await db.insertInto('audit_entries').values(entry).execute();
}

type Actor = Pick<NewEntry, 'actor_kind' | 'actor_id'>;

/** Selects entries by the fields of their details. */
interface DetailFields {
  readonly with?: string;
  readonly without?: readonly string[];
}

/** Counts the entries of an actor on a day (UTC). */
export async function countEntriesOfActor(
  db: Db,
  actor: Actor,
  day: string,
  { with: required, without = [] }: DetailFields,
): Promise<number> {
  // JSON escapes quotes inside values, so only the name of a field matches this pattern.
  const pattern = (field: string) => `%"${field}":%`;
  let entries = entriesOfActor(db, actor, day);
  if (required !== undefined) entries = entries.where('details', 'like', pattern(required));
  for (const field of without) entries = entries.where('details', 'not like', pattern(field));
  return countRows(entries);
}

export async function countActionsOfActor(db: Db, actor: Actor, day: string, action: string): Promise<number> {
  return countRows(entriesOfActor(db, actor, day).where('action', '=', action));
}

/** Entries of later days, written while the clock was ahead, do not count. */
function entriesOfActor(db: Db, { actor_kind, actor_id = null }: Actor, day: string) {
  return db
    .selectFrom('audit_entries')
    .where('actor_kind', '=', actor_kind)
    .where('actor_id', '=', actor_id)
    .where('at', '>=', day)
    .where('at', '<=', `${day}T99`);
}

/** Returns the key that enrolled a peer. Its entry may be some seconds after the enrolment. */
export async function findKeyOfEntry(
  db: Db,
  organizationId: number,
  peer: number,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<{ readonly id: number; readonly name: string } | undefined> {
  const row = await db
    .selectFrom('audit_entries')
    .select(['actor_id', 'actor_name'])
    .where('at', '>=', from)
    .where('at', '<=', to)
    .where('organization_id', '=', organizationId)
    .where('action', '=', 'peer.enroll')
    .where('actor_kind', '=', 'enrollment_key')
    .where('target_id', '=', peer)
    .executeTakeFirst();
  if (row === undefined || row.actor_id === null || row.actor_name === null) return undefined;
  return { id: row.actor_id, name: row.actor_name };
}

/** Selects audit entries. An absent field does not restrict. */
export interface AuditFilter {
  /** A part of the actor's name, action, target's name, address or details, case-insensitive. */
  readonly search?: string | undefined;
  /** An action such as `peer.enroll`, or the part before the dot. */
  readonly action?: string | undefined;
  /** ISO 8601. */
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

const searched = ['actor_name', 'action', 'target_name', 'address', 'details'] as const;

/** The entries of an organization, newest first. */
export async function listEntries(
  db: Db,
  organizationId: number,
  { search, action, since, until }: AuditFilter,
  slice: Slice,
): Promise<StoredPage<StoredEntry>> {
  let list = db.selectFrom('audit_entries').selectAll().where('organization_id', '=', organizationId);
  if (since !== undefined) list = list.where('at', '>=', since);
  if (until !== undefined) list = list.where('at', '<', until);
  if (action !== undefined) {
    const group = `${escapeLike(action)}.%`;
    list = list.where((eb) => eb.or([eb('action', '=', action), sql<boolean>`action like ${group} escape '!'`]));
  }
  const words = searchWords(search ?? '');
  for (const word of words) {
    const part = `%${escapeLike(word)}%`;
    list = list.where((eb) =>
      eb.or(searched.map((column) => sql<boolean>`lower(${sql.ref(column)}) like ${part} escape '!'`)),
    );
  }
  return words.length === 0 ? readPage(db, list, slice, 'desc') : searchPage(db, organizationId, list, slice);
}

/** The number of entries of one search step. SQLite answers no other request during a step. */
const searchedAtOnce = 2_000;

/** Like {@link readPage}, for a search over all entries. Other requests run between the steps. */
async function searchPage(
  db: Db,
  organizationId: number,
  list: SelectQueryBuilder<Tables, 'audit_entries', StoredEntry>,
  { after, skip, limit }: Slice,
): Promise<StoredPage<StoredEntry>> {
  const most = Math.max(skip + limit, after === null ? maxCounted : 0) + 1;
  const all = db.selectFrom('audit_entries').select('id').where('organization_id', '=', organizationId);
  const found = list.clearSelect().select('id').orderBy('id', 'desc');
  const readPart = async (before: number | null, limit: number) => {
    const [rest, wanted] =
      before === null ? [all, found] : [all.where('id', '<', before), found.where('id', '<', before)];
    const oldest = await rest
      .orderBy('id', 'desc')
      .limit(1)
      .offset(searchedAtOnce - 1)
      .executeTakeFirst();
    const part = oldest === undefined ? wanted : wanted.where('id', '>=', oldest.id);
    return { oldest: oldest?.id, found: await part.limit(limit).execute() };
  };
  const ids: number[] = [];
  for (let before: number | null | undefined = after; before !== undefined && ids.length < most; ) {
    const part: Awaited<ReturnType<typeof readPart>> = await readPart(before, most - ids.length);
    for (const { id } of part.found) ids.push(id);
    before = part.oldest;
    await setImmediate();
  }
  const shown = ids.slice(skip, skip + limit);
  const entries = shown.length === 0 ? [] : await list.where('id', 'in', shown).orderBy('id', 'desc').execute();
  const next = ids.length > skip + limit ? (shown.at(-1) ?? null) : null;
  return { entries, next, total: after === null && ids.length <= maxCounted ? ids.length : null };
}

const escapeLike = (text: string) => text.replace(/[!%_]/g, '!$&');

const agesOf = ['id', 'at', 'action', 'actor_kind', 'actor_id', 'address'] as const;

export type EntryAge = Pick<StoredEntry, (typeof agesOf)[number]>;

/** Lists the newest entries of all organizations, or the entries before the id `before`. */
export async function listAges(db: Db, before: number | null, limit: number): Promise<EntryAge[]> {
  const query = db.selectFrom('audit_entries').select(agesOf);
  const page = before === null ? query : query.where('id', '<', before);
  return page.orderBy('id', 'desc').limit(limit).execute();
}

/** Reads the entries with these ids that are left. */
export async function readToPrune(db: Db, ids: readonly number[]): Promise<StoredEntry[]> {
  return db
    .selectFrom('audit_entries')
    .selectAll()
    .where('id', 'in', ids)
    .orderBy('id')
    .$if(locksRows(db), (query) => query.forUpdate())
    .execute();
}

export async function deleteEntries(db: Db, ids: readonly number[]): Promise<void> {
  if (ids.length > 0) await db.deleteFrom('audit_entries').where('id', 'in', ids).execute();
}
