import { type SelectQueryBuilder, sql } from 'kysely';
import { countRows } from './database.ts';
import type { Db } from './tables.ts';

export interface Slice {
  /** The id of the entry before the part; null for the beginning of the list. */
  readonly after: number | null;
  /** The number of entries to skip from there. */
  readonly skip: number;
  readonly limit: number;
}

export interface StoredPage<Entry> {
  readonly entries: readonly Entry[];
  /** The id of the last entry if the list continues after it, else null. */
  readonly next: number | null;
  /** The number of entries of the whole list; null if they are not counted. */
  readonly total: number | null;
}

/** Longer lists are not counted, so that the cost of a request does not grow with the list. */
export const maxCounted = 10_000;

/**
 * A part begins after an id, so that insertions and deletions elsewhere shift nothing. Only a read
 * of the beginning counts entries. `desc` is newest first.
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

export function mapPage<Stored, Shown>(page: StoredPage<Stored>, present: (entry: Stored) => Shown): StoredPage<Shown> {
  return { ...page, entries: page.entries.map(present) };
}
