import { sql } from 'kysely';
import { locksRows } from './locks.ts';
import type { Db } from './tables.ts';

/** The time of the database's machine, which for SQLite is this one. */
export async function readDatabaseTime(db: Db): Promise<Date> {
  if (!locksRows(db)) return new Date();
  const milliseconds = sql<string>`(extract(epoch from clock_timestamp()) * 1000)::text`;
  const { at } = await db.selectNoFrom(milliseconds.as('at')).executeTakeFirstOrThrow();
  return new Date(Number(at));
}
