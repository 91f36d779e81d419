import { PostgresAdapter, type SelectQueryBuilder, sql } from 'kysely';
import type { Db, Tables } from './tables.ts';

/** Whether rows can be locked, and need it: in SQLite one transaction runs at a time. */
export function locksRows(db: Db): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

/** Makes all others who would change this table wait until the transaction ends. */
export async function lockTable(db: Db, table: keyof Tables): Promise<void> {
  if (locksRows(db)) await sql`lock table ${sql.table(table)} in share row exclusive mode`.execute(db);
}

/** The time of the database's machine, which for SQLite is this one. */
export async function readDatabaseTime(db: Db): Promise<Date> {
  if (!locksRows(db)) return new Date();
  const milliseconds = sql<string>`(extract(epoch from clock_timestamp()) * 1000)::text`;
  const { at } = await db.selectNoFrom(milliseconds.as('at')).executeTakeFirstOrThrow();
  return new Date(Number(at));
}

/** How many rows a query without columns selects. */
export async function countRows<All, Name extends keyof All>(
  rows: SelectQueryBuilder<All, Name, object>,
): Promise<number> {
  const counted = rows.select((eb) => eb.fn.countAll<number | string>().as('count'));
  const { count } = (await counted.executeTakeFirstOrThrow()) as { readonly count: number | string };
  return Number(count);
}

/** Writes a row and keeps it: a disk that is full fails at the commit. */
export async function writeCheck(db: Db, at: string): Promise<void> {
  await db
    .insertInto('write_checks')
    .values({ id: 1, at })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ at }))
    .execute();
}
