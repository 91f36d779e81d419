import { chmodSync, closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { SqliteAdapter, type SqliteDatabase, SqliteDialect, type SqliteStatement } from 'kysely';
import { translateSqlite } from './errors.ts';

/** With these a write that was acknowledged is on disk: the log is synced at every commit. */
export const durable: readonly string[] = [
  'busy_timeout = 5000',
  'journal_mode = WAL',
  'synchronous = FULL',
  'foreign_keys = ON',
  'trusted_schema = OFF',
];

/** Opens a database file, making it where it is not there, readable by its owner alone. */
export function openSqlite(path: string, pragmas: readonly string[]): DatabaseSync {
  createPrivately(path);
  const database = new DatabaseSync(path);
  try {
    for (const pragma of pragmas) database.exec(`PRAGMA ${pragma}`);
    // SQLite's own folds ASCII alone (lang_corefunc), and PostgreSQL's all letters.
    database.function('lower', { deterministic: true }, (value) =>
      typeof value === 'string' ? value.toLowerCase() : value,
    );
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

/** Kysely's SQLite dialect over node:sqlite. */
export function sqliteDialect(database: DatabaseSync): SqliteDialect {
  return new CrashSafeSqliteDialect({ database: adapt(database) });
}

/** SQLite gives its log and its index the mode of the database. */
function createPrivately(path: string): void {
  try {
    // An existing file is not opened: closing it again would drop the locks that this process holds on it (fcntl(2)).
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    chmodSync(path, 0o600);
  }
}

/** The program has fewer statements than this; lists of many lengths make more of them. */
const keptStatements = 256;

/**
 * Kysely expects better-sqlite3's interface; node:sqlite differs in its parameters and in how it distinguishes reads from writes. Statements
 * are prepared once: that takes as long as most of them run.
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
        // A full disk has ended the transaction already (SQLite's lang_transaction, 3); an error of this would hide the one of the disk.
        if (sql === 'rollback' && !database.isTransaction) return unchanged;
        return attempt(() => statement.run(...(parameters as SqliteValue[])));
      },
      // Two may read from it at once, each at its own pace.
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

/** SQLite can roll back a CREATE TABLE, so Kysely may run all migrations in one transaction. */
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
