import { chmodSync, closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { SqliteAdapter, type SqliteDatabase, SqliteDialect, type SqliteStatement } from 'kysely';
import { translateSqlite } from './errors.ts';

/** Syncs the log at every commit, so that an acknowledged write is on disk. */
export const durable: readonly string[] = [
  'busy_timeout = 5000',
  'journal_mode = WAL',
  'synchronous = FULL',
  'foreign_keys = ON',
  'trusted_schema = OFF',
];

/** Opens a database file, readable only by its owner. Creates it if it does not exist. */
export function openSqlite(path: string, pragmas: readonly string[]): DatabaseSync {
  createPrivately(path);
  const database = new DatabaseSync(path);
  try {
    for (const pragma of pragmas) database.exec(`PRAGMA ${pragma}`);
    // SQLite's `lower` folds only ASCII (lang_corefunc). PostgreSQL's folds all letters.
    database.function('lower', { deterministic: true }, (value) =>
      typeof value === 'string' ? value.toLowerCase() : value,
    );
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

export function sqliteDialect(database: DatabaseSync): SqliteDialect {
  return new CrashSafeSqliteDialect({ database: adapt(database) });
}

/** Creates the file with its final mode, because SQLite's log and index get the same mode. */
function createPrivately(path: string): void {
  try {
    // Never open an existing file: closing it drops this process's locks on it (fcntl(2)).
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    chmodSync(path, 0o600);
  }
}

/** The program has fewer statements than this. Lists of many lengths produce more. */
const keptStatements = 256;

/**
 * Adapts node:sqlite to the interface of better-sqlite3 that Kysely expects. Prepares statements
 * only once, because preparing takes as long as running most of them.
 */
function adapt(database: DatabaseSync): SqliteDatabase {
  const prepared = new Map<string, SqliteStatement>();
  const prepare = (sql: string): SqliteStatement => {
    const statement = database.prepare(sql);
    const attempt = <Result>(work: () => Result): Result => {
      try {
        return work();
      } catch (error) {
        throw translateSqlite(error, sql === 'commit');
      }
    };
    return {
      reader: statement.columns().length > 0,
      all: (parameters) => attempt(() => statement.all(...(parameters as SqliteValue[]))),
      run: (parameters) => {
        // A full disk has ended the transaction already (SQLite's lang_transaction, 3). An error of
        // the rollback would hide the disk's.
        if (sql === 'rollback' && !database.isTransaction) return unchanged;
        return attempt(() => statement.run(...(parameters as SqliteValue[])));
      },
      // Two callers may iterate at the same time, each at its own pace.
      iterate: (parameters) => database.prepare(sql).iterate(...(parameters as SqliteValue[])),
    };
  };
  return {
    close: () => database.close(),
    prepare: (sql) => {
      const known = prepared.get(sql);
      if (known) return known;
      if (prepared.size >= keptStatements) prepared.clear();
      const statement = prepare(sql);
      prepared.set(sql, statement);
      return statement;
    },
  };
}

type SqliteValue = string | number | null;

const unchanged = { changes: 0, lastInsertRowid: 0 };

/** SQLite can roll back CREATE TABLE, so Kysely may run all migrations in one transaction. */
class CrashSafeSqliteDialect extends SqliteDialect {
  override createAdapter(): SqliteAdapter {
    return new TransactionalSqliteAdapter();
  }
}

class TransactionalSqliteAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}
