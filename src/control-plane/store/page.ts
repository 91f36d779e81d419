import { type SelectQueryBuilder, sql } from 'kysely';
import { countRows } from './database.ts';
import type { Db } from './tables.ts';

/** Which part of a list is read. */
export interface Slice {
  /** The id of the entry before it; null for the beginning of the list. */
  readonly after: number | null;
  /** How many entries are passed over from there on. */
  readonly skip: number;
  readonly limit: number;
}

/** A part of a list. */
export interface StoredPage<Entry> {
  readonly entries: readonly Entry[];
  /** The id of its last entry, where there are others after it. */
  readonly next: number | null;
  /** How many entries the whole list has; null where that is not counted. */
  readonly total: number | null;
}

/** Of a longer list the entries are not counted: a request costs the same, however long a list is. */
export const maxCounted = 10_000;

/**
 * Reads a part of a list in the order of its ids, newest first for `desc`. What comes and goes elsewhere in the list shifts nothing: a
 * part begins after an id. Only the beginning is counted.
 */
export async function readPage<Tables, Name extends keyof Tables, Entry extends { readonly id: number }>(
  db: Db,
  list: SelectQueryBuilder<Tables, Name, Entry>,
  { after, skip, limit }: Slice,
  order: 'asc' | 'desc' = 'asc',
): Promise<StoredPage<Entry>> {
  const id = sql.ref<number>('id');
  const rest = after === null ? list : list.where(id, order === 'asc' ? '>' : '<', after as never);
  const found = await rest
    .orderBy(id, order)
    .limit(limit + 1)
    .offset(skip)
    .execute();
  const entries = found.slice(0, limit);
  const next = found.length > limit ? (entries.at(-1)?.id ?? null) : null;
  if (after !== null) return { entries, next, total: null };
  const isWhole = skip === 0 && next === null;
  return { entries, next, total: isWhole ? entries.length : await countUpToMax(db, list) };
}

async function countUpToMax<Tables, Name extends keyof Tables, Entry>(
  db: Db,
  list: SelectQueryBuilder<Tables, Name, Entry>,
): Promise<number | null> {
  const few = list
    .clearSelect()
    .select(sql.ref('id').as('id'))
    .limit(maxCounted + 1);
  const count = await countRows(db.selectFrom(few.as('few')));
  return count > maxCounted ? null : count;
}

/** The page with each entry as `present` makes it. */
export function mapPage<Stored, Shown>(page: StoredPage<Stored>, present: (entry: Stored) => Shown): StoredPage<Shown> {
  return { ...page, entries: page.entries.map(present) };
}
