import { Kysely } from 'kysely';
import { CpnError } from '../../../core/errors/index.ts';
import { NewerDatabase, Unavailable, UnusableFile } from '../../errors.ts';
import type { ControlPlaneStore } from '../database.ts';
import { migrate } from '../migrations/migrate.ts';
import type { Db, Tables } from '../tables.ts';
import { requireDatabaseIn, requireRegularFile, takeDataFolder } from './data-folder.ts';
import { isOfDisk, isPassing } from './errors.ts';
import { durable, openSqlite, sqliteDialect } from './sqlite.ts';

/** Opens and migrates the database in a folder. No other process may use the folder meanwhile. */
export async function openStore(folder: string): Promise<ControlPlaneStore> {
  const { database, release } = takeDataFolder(folder);
  try {
    const db = new Kysely<Tables>({ dialect: sqliteDialect(openSqlite(database, durable)) });
    const close = async () => {
      await db.destroy();
      release();
    };
    await migrate(db).catch(async (error) => {
      await db.destroy();
      throw error;
    });
    return { db, close, announce: async () => undefined, isListening: () => true };
  } catch (error) {
    release();
    const cause = error instanceof Unavailable ? error.cause : error;
    throw cause instanceof CpnError && !(cause instanceof NewerDatabase) ? cause : unusable(database, cause);
  }
}

/** Runs `work` on a folder's database without migrating it, also while a control plane serves. */
export async function withExistingDatabase<Result>(folder: string, work: (db: Db) => Promise<Result>): Promise<Result> {
  const database = requireDatabaseIn(folder);
  requireRegularFile(database);
  try {
    const db = new Kysely<Tables>({ dialect: sqliteDialect(openSqlite(database, durable)) });
    return await work(db).finally(() => db.destroy());
  } catch (error) {
    throw error instanceof CpnError ? error : unusable(database, error);
  }
}

function unusable(database: string, error: unknown): UnusableFile {
  const reason = error instanceof Error ? error.message : String(error);
  if (error instanceof NewerDatabase) {
    const problem = `was written by a newer cpn (${reason})`;
    return new UnusableFile(database, problem, 'run that version, or restore a backup', { cause: error });
  }
  const remedy = isOfDisk(error) ? 'check its disk' : 'restore it from a backup, or run the cpn that wrote it';
  return new UnusableFile(database, `cannot be used as a control plane's database (${reason})`, remedy, {
    cause: error,
    isRetryable: isPassing(error),
  });
}
