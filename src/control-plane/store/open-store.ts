import { existsSync } from 'node:fs';
import { Kysely } from 'kysely';
import { CpnError, UnreadableFile } from '../../core/errors.ts';
import { NewerDatabase, Unavailable } from '../errors.ts';
import { databaseIn, noDatabaseIn, refuseIrregular, takeDataFolder } from './data-folder.ts';
import { migrate } from './migrate.ts';
import { durable, openSqlite, sqliteDialect } from './sqlite.ts';
import { isOfDisk } from './sqlite-errors.ts';
import type { Db, Tables } from './tables.ts';

export interface Store {
  readonly db: Db;
  close(): Promise<void>;
  /** Tells the other processes on this database of a change of a network, once the transaction that made it is committed. */
  announce(transaction: Db, network: number): Promise<void>;
}

/** What a store tells of other processes. */
export interface StoreEvents {
  /** A change of the network was committed, and can be read. */
  wake(network: number): void;
  /** Changes may have been missed. */
  wakeAll(): void;
  /** Until the next {@link wakeAll} nothing is heard of other processes. */
  lost(reason: string): void;
}

/** Opens the database in a folder, which no other process may use meanwhile, and brings its tables up to date. */
export async function openStore(folder: string): Promise<Store> {
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
    return { db, close, announce: async () => undefined };
  } catch (error) {
    release();
    const cause = error instanceof Unavailable ? error.cause : error;
    throw cause instanceof CpnError && !(cause instanceof NewerDatabase) ? cause : unreadable(database, cause);
  }
}

/** Works on the database in a folder with its tables as they are, also while a control plane serves from it. */
export async function workBeside<Result>(folder: string, work: (db: Db) => Promise<Result>): Promise<Result> {
  const database = databaseIn(folder);
  if (!existsSync(database)) throw noDatabaseIn(folder);
  refuseIrregular(database);
  try {
    const db = new Kysely<Tables>({ dialect: sqliteDialect(openSqlite(database, durable)) });
    return await work(db).finally(() => db.destroy());
  } catch (error) {
    throw error instanceof CpnError ? error : unreadable(database, error);
  }
}

function unreadable(database: string, error: unknown): UnreadableFile {
  const reason = error instanceof Error ? error.message : String(error);
  if (error instanceof NewerDatabase) {
    const problem = `was written by a newer cpn (${reason})`;
    return new UnreadableFile(database, problem, 'run that one, or restore a backup', error);
  }
  const remedy = isOfDisk(error) ? 'look at its disk' : 'restore it from a backup, or run the cpn that wrote it';
  return new UnreadableFile(database, `cannot be used as a control plane's database (${reason})`, remedy, error);
}
