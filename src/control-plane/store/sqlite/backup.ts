import { randomBytes } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CpnError, DiskFailed, UnreadableFile, WrongUsage } from '../../../core/errors/index.ts';
import { requireDatabaseIn } from './data-folder.ts';
import { isOfDisk } from './errors.ts';

/**
 * Writes a consistent copy, readable only by its owner, while a control plane may write. It has
 * everything acknowledged before, and no partial change. Returns its size in bytes. The file gets
 * its name only after it was checked and synced to disk.
 */
export function backUp(folder: string, path: string): number {
  const database = requireDatabaseIn(folder);
  if (existsSync(path)) throw taken(path);
  const draft = join(dirname(resolve(path)), `.cpn-backup-${randomBytes(6).toString('hex')}`);
  try {
    createPrivately(draft);
    copy(database, draft);
    check(draft);
    sync(draft);
    publish(draft, path);
    sync(dirname(draft));
    return statSync(path).size;
  } catch (error) {
    throw explain(error, database, path);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** SQLite would create the file with the permissions of the umask. */
function createPrivately(path: string): void {
  closeSync(openSync(path, 'wx', 0o600));
}

/** Reads the database in one transaction that blocks no writer. The copy omits free space. */
function copy(database: string, path: string): void {
  const source = new DatabaseSync(database);
  try {
    source.exec('PRAGMA busy_timeout = 5000');
    source.prepare('VACUUM INTO ?').run(path);
  } finally {
    source.close();
  }
}

function check(path: string): void {
  const copied = new DatabaseSync(path, { readOnly: true });
  try {
    const problems = copied
      .prepare('PRAGMA integrity_check(1)')
      .all()
      .map(({ integrity_check: said }) => String(said));
    const strays = copied.prepare('PRAGMA foreign_key_check').all();
    if (problems[0] !== 'ok' || strays.length > 0) {
      const what = problems[0] === 'ok' ? 'rows refer to rows that do not exist' : problems[0];
      throw new UnreadableFile(path, `is damaged: ${what}`, damaged);
    }
  } finally {
    copied.close();
  }
}

/** Unlike a rename, a link replaces no new file. Not all file systems have links. */
function publish(draft: string, path: string): void {
  try {
    linkSync(draft, path);
  } catch (error) {
    if (!linkless.includes((error as NodeJS.ErrnoException).code)) throw error;
    if (existsSync(path)) throw taken(path);
    renameSync(draft, path);
  }
}

const linkless: readonly unknown[] = ['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP'];

/** SQLite does not sync such a copy to disk. */
function sync(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function explain(error: unknown, database: string, path: string): Error {
  if (error instanceof CpnError || !(error instanceof Error)) return error as Error;
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'EEXIST') return taken(path);
  const folder = dirname(database);
  if (isOfDisk(error) && isReadOnly(folder)) {
    return new UnreadableFile(
      folder,
      'is read-only, and SQLite needs files next to the database to read it',
      copyFirst,
      error,
    );
  }
  if (code === 'ERR_SQLITE_ERROR')
    return new UnreadableFile(database, `cannot be copied (${error.message})`, damaged, error);
  return new DiskFailed('write', path, error);
}

/** access(2) reports a read-only file system to root too. */
function isReadOnly(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return false;
  } catch {
    return true;
  }
}

const copyFirst = 'make it writable, or copy the whole folder to one that is and name that with --data';

const damaged = 'no copy was made; check the disks of both, and keep the existing backups';

function taken(path: string): WrongUsage {
  return new WrongUsage(`${path} exists, and a backup does not replace files; name another file`);
}
