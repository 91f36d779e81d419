import { PostgresAdapter, sql } from 'kysely';
import type { Db, Tables } from './tables.ts';

/** Whether rows can be locked, and need it: in SQLite one transaction runs at a time. */
export function locksRows(db: Db): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

/** Makes all others who would change this table wait until the transaction ends. */
export async function holdTable(db: Db, table: keyof Tables): Promise<void> {
  if (locksRows(db)) await sql`lock table ${sql.table(table)} in share row exclusive mode`.execute(db);
}
