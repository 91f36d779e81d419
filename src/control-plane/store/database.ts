import { type Kysely, PostgresAdapter, type SelectQueryBuilder, sql } from 'kysely';
import type { Db, Tables } from './tables.ts';

/** The changed part of a network: its map, its health and events, or the messages for its hosts. */
export type Topic = 'map' | 'health' | 'messages';

export interface ControlPlaneStore {
  readonly db: Db;
  close(): Promise<void>;
  /** Announces a change to the other processes on this database when the transaction commits. */
  announce(transaction: Db, network: number, topic: Topic): Promise<void>;
  /** False while changes by other processes do not arrive. */
  isListening(): boolean;
}

export interface StoreEvents {
  /** A change of the network was committed, and can be read. */
  notify(network: number, topic: Topic): void;
  /** True if a request waits for such a change of the network. */
  isAwaited(network: number, topic: Topic): boolean;
  /** Changes may have been missed. */
  notifyAll(): void;
  /** Changes by other processes are missed until the next {@link notifyAll}. */
  lost(reason: string): void;
  /** Roles without any right in the database may connect to it. */
  openToOthers(database: string): void;
}

/** True for PostgreSQL. In SQLite rows need no lock, because one transaction runs at a time. */
export function locksRows(db: Db): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter;
}

/** Makes all other writers of this table wait until the transaction ends. */
export async function lockTable(db: Db, table: keyof Tables): Promise<void> {
  if (locksRows(db)) await sql`lock table ${sql.table(table)} in share row exclusive mode`.execute(db);
}

/** The time of the database server. For SQLite it is the time of this host. */
export async function readDatabaseTime(db: Db): Promise<Date> {
  if (!locksRows(db)) return new Date();
  const milliseconds = sql<string>`(extract(epoch from clock_timestamp()) * 1000)::text`;
  const { at } = await db.selectNoFrom(milliseconds.as('at')).executeTakeFirstOrThrow();
  return new Date(Number(at));
}

export async function countRows<All, Name extends keyof All>(
  rows: SelectQueryBuilder<All, Name, object>,
): Promise<number> {
  const counted = rows.select((eb) => eb.fn.countAll<number | string>().as('count'));
  const { count } = (await counted.executeTakeFirstOrThrow()) as { readonly count: number | string };
  return Number(count);
}

/** Writes and commits a row: a full disk fails at the commit. */
export async function writeCheck(db: Db, at: string): Promise<void> {
  await db
    .insertInto('write_checks')
    .values({ id: 1, at })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ at }))
    .execute();
}

/**
 * Lets no version without a migration start on the database while it is needed: such a version
 * would permit what a later one refuses.
 */
export async function requireVersion(db: Db, migration: string, isNeeded: boolean): Promise<void> {
  const records = db as unknown as Kysely<{ kysely_migration: { name: string; timestamp: string } }>;
  if (!isNeeded) {
    await records.deleteFrom('kysely_migration').where('name', '=', migration).execute();
    return;
  }
  await records
    .insertInto('kysely_migration')
    .values({ name: migration, timestamp: new Date().toISOString() })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .execute();
}
