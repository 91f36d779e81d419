import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { CpnError, Locked, WrongUsage } from '../../../core/errors/index.ts';
import { UnusableFile } from '../../errors.ts';
import { isBusy, isPassing } from './errors.ts';
import { openSqlite } from './sqlite.ts';

/** A folder that only this process uses, until it releases it or dies. */
export interface DataFolder {
  readonly database: string;
  release(): void;
}

function databaseIn(folder: string): string {
  return join(folder, 'control-plane.db');
}

/** @throws WrongUsage if the database is missing, UnusableFile if unreadable */
export function requireDatabaseIn(folder: string): string {
  const database = databaseIn(folder);
  try {
    accessSync(database, constants.R_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'ENOTDIR')
      throw new UnusableFile(
        database,
        `cannot be read (${code})`,
        'do this as the user that the control plane runs as',
        {
          cause: error,
        },
      );
    throw new WrongUsage(`there is no database in ${folder}; name its folder with --data`);
  }
  return database;
}

/**
 * Creates the folder, closed to other users, and locks it by a separate file: `sqlite3` and a
 * backup can still open the database. The kernel releases the lock however the process ends.
 */
export function takeDataFolder(path: string): DataFolder {
  try {
    return take(path);
  } catch (error) {
    if (error instanceof CpnError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new UnusableFile(path, `cannot be used as a data folder (${reason})`, 'choose another with --data', {
      cause: error,
      isRetryable: isPassing(error),
    });
  }
}

function take(path: string): DataFolder {
  const database = databaseIn(path);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  requireOwnFolder(path, database);
  const pidFile = join(path, 'control-plane.pid');
  const lockFile = join(path, 'control-plane.lock');
  for (const file of [database, `${database}-wal`, `${database}-shm`, lockFile, pidFile]) requireOwnFile(file);
  const release = lock(lockFile, pidFile);
  rmSync(pidFile, { force: true });
  writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600, flag: 'wx' });
  return { database, release };
}

/** Closes the folder to other users. A folder with other files in it keeps its mode. */
function requireOwnFolder(path: string, database: string): void {
  const { uid } = statSync(path);
  requireOwner(path, uid);
  try {
    if (existsSync(database) || readdirSync(path).length === 0) chmodSync(path, 0o700);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const user = process.geteuid?.();
    if ((code !== 'EACCES' && code !== 'EPERM') || uid === user) throw cause;
    // The folder was probably restored by root.
    const problem = `belongs to user ${uid}, and user ${user} cannot use it`;
    const remedy = `if it holds the control plane's data, type: chown -R ${user} ${path}`;
    throw new UnusableFile(path, problem, remedy, { cause });
  }
}

/** Only root and this user may own the file, because its owner could change the mode. */
function requireOwnFile(path: string): void {
  const stats = requireRegularFile(path);
  if (stats === undefined) return;
  requireOwner(path, stats.uid);
  try {
    closeSync(openSync(path, 'r+'));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EACCES') throw cause;
    // The file was probably restored by root.
    const user = process.geteuid?.() ?? '';
    const problem = `belongs to user ${stats.uid}, and user ${user} cannot read and write it`;
    throw new UnusableFile(path, problem, `type: chown ${user} ${path}`, { cause });
  }
}

/** Refuses links: SQLite follows a link, and creates its target. */
export function requireRegularFile(path: string): Stats | undefined {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined || stats.isFile()) return stats;
  throw new UnusableFile(path, 'is not a regular file', 'check who created it, and remove it');
}

function requireOwner(path: string, uid: number): void {
  if (uid === 0 || uid === process.geteuid?.()) return;
  throw new UnusableFile(
    path,
    `belongs to user ${uid}`,
    'check its content, then change its owner to the user of the control plane',
  );
}

function lock(path: string, pidFile: string): () => void {
  const file = openSqlite(path, ['busy_timeout = 0']);
  try {
    file.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    file.close();
    throw isBusy(error) ? new Locked(path, readPid(pidFile)) : error;
  }
  return () => file.close();
}

function readPid(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return 'unknown';
  }
}
