import type { Kysely } from 'kysely';
import { NewerDatabase } from '../../errors.ts';
import type { Db } from '../tables.ts';
import { type Migration, migrations, neededMigration } from './migrations.ts';

/** The tables that record which steps were applied. */
interface Records {
  /**
   * The steps that a version must have to use the database. The table has the name and columns of
   * Kysely's own migrator: versions up to 0.1.0 use it to detect a database that is too new.
   */
  kysely_migration: { name: string; timestamp: string };
  /** The steps that were applied since this table exists, required or not. */
  applied_migrations: { name: string; at: string };
}

/**
 * In one transaction. If several processes start at once, the first migrates and the others wait.
 * Unknown optional steps of a newer version stay.
 * @throws NewerDatabase if a required step is unknown to this version; then nothing is changed
 */
export async function migrate(
  db: Db,
  steps: Readonly<Record<string, Migration>> = migrations,
  needed = neededMigration,
): Promise<void> {
  // The lock of Kysely's migrator, because a process of an older version may migrate too.
  const { adapter } = db.getExecutor();
  await db.connection().execute(async (connection) => {
    await adapter.acquireMigrationLock(connection, lock);
    try {
      await connection
        .transaction()
        .execute((within) => takeSteps(within as unknown as Kysely<Records>, steps, needed));
    } finally {
      await adapter.releaseMigrationLock(connection, lock);
    }
  });
}

const lock = { lockTable: 'kysely_migration_lock', lockRowId: 'migration_lock' };

async function takeSteps(
  db: Kysely<Records>,
  steps: Readonly<Record<string, Migration>>,
  needed: string,
): Promise<void> {
  await makeRecords(db);
  const known = await namesIn(db, 'kysely_migration');
  const unknown = [...known].find((name) => !(name in steps));
  if (unknown !== undefined) throw new NewerDatabase(unknown);
  const done = new Set([...known, ...(await namesIn(db, 'applied_migrations'))]);
  const now = new Date().toISOString();
  for (const [name, step] of Object.entries(steps)) {
    if (!done.has(name)) {
      await step(db as unknown as Kysely<unknown>);
      await db.insertInto('applied_migrations').values({ name, at: now }).execute();
    }
    if (name <= needed && !known.has(name)) {
      await db.insertInto('kysely_migration').values({ name, timestamp: now }).execute();
    }
  }
}

async function namesIn(db: Kysely<Records>, table: keyof Records): Promise<Set<string>> {
  return new Set((await db.selectFrom(table).select('name').execute()).map(({ name }) => name));
}

async function makeRecords(db: Kysely<Records>): Promise<void> {
  const tables = await db.introspection.getTables({ withInternalKyselyTables: true });
  for (const [table, time] of [
    ['kysely_migration', 'timestamp'],
    ['applied_migrations', 'at'],
  ] as const) {
    if (tables.some(({ name }) => name === table)) continue;
    await db.schema
      .createTable(table)
      .addColumn('name', 'varchar(255)', (column) => column.notNull().primaryKey())
      .addColumn(time, 'varchar(255)', (column) => column.notNull())
      .execute();
  }
}
