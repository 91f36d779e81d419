import { closeSync, lstatSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { DiskFailed, Locked, NotOurs } from '../core/errors/index.ts';
import { readText } from './files/atomic-file.ts';
import { ignore, touch } from './files/disk.ts';
import { listFolder, makeFolder } from './files/folder.ts';

/** A lock that only one process of this host may hold at a time. */
export interface LockKind {
  readonly file: string;
  /** The program that holds it, for messages. */
  readonly program: 'cpn' | 'cpn run';
  /** Milliseconds for which another process waits for it. */
  readonly patienceMs: number;
}

/** Held while a command changes this host. The wait exceeds the longest request of a join. */
export const passLock: LockKind = { file: 'lock', program: 'cpn', patienceMs: 45_000 };
/** Held from the start of an operator's change until it is confirmed or rolled back. */
export const changeLock: LockKind = { file: 'change', program: 'cpn', patienceMs: 45_000 };
/** Held for the whole life of a daemon. */
export const daemonLock: LockKind = { file: 'daemon', program: 'cpn run', patienceMs: 0 };

const pause = 100;

/**
 * Runs `work` while no other process of this host holds the same lock. Node has no file locks, so
 * it is SQLite's. The kernel drops it with its process, so it is never stale.
 *
 * @param make creates the folder before each attempt: a former holder may have removed it
 * @throws Locked if another process holds it beyond the wait of its kind
 * @throws DiskFailed if the folder cannot hold a lock; `work` does not start
 */
export async function withLock<T>(
  folder: string,
  work: () => Promise<T>,
  kind: LockKind = passLock,
  make: (folder: string) => Promise<unknown> = makeFolder,
): Promise<T> {
  const path = join(folder, kind.file);
  const held = await acquire(path, kind, () => make(folder));
  try {
    // Only messages use the holder's id, so a full disk must not stop the work.
    await writeHolder(path).catch(() => {});
    return await work();
  } finally {
    held.close();
  }
}

/** True while a process holds the lock. Creates no file, and does not disturb the holder. */
export async function isLocked(folder: string, { file }: LockKind = passLock): Promise<boolean> {
  const path = join(folder, file);
  if (inodeOf(path) === null) return false;
  const { DatabaseSync } = await import('node:sqlite');
  let database: DatabaseSync | null = null;
  try {
    database = new DatabaseSync(path, { readOnly: true });
    database.exec('SELECT 1 FROM sqlite_schema');
    return false;
  } catch (error) {
    return (Number((error as { errcode?: number }).errcode) & 0xff) === busy;
  } finally {
    database?.close();
  }
}

/** Only the holder may call this. A waiting process notices, and creates a new lock. */
export async function removeLock(folder: string, { file }: LockKind = passLock): Promise<void> {
  const path = join(folder, file);
  for (const each of [holderOf(path), path]) await touch('unlink', each, async () => rmSync(each, { force: true }));
}

/** Removes the files of a lock that no process holds, such as those of a killed process. */
export async function removeStale(folder: string, kind: LockKind): Promise<void> {
  if (!(await listFolder(folder)).includes(kind.file)) return;
  try {
    await withLock(folder, () => removeLock(folder, kind), { ...kind, patienceMs: 0 });
  } catch (error) {
    if (!(error instanceof Locked)) throw error;
  }
}

async function acquire(
  path: string,
  { patienceMs, program }: LockKind,
  makeRoom: () => Promise<unknown>,
): Promise<DatabaseSync> {
  const { DatabaseSync } = await import('node:sqlite');
  for (let waited = 0; waited <= patienceMs; waited += pause) {
    if (waited > 0) await sleep(pause);
    await makeRoom();
    await createLock(path);
    const before = inodeOf(path);
    const database = tryLock(path, () => new DatabaseSync(path));
    if (database !== null && before !== null && inodeOf(path) === before) return database;
    database?.close();
  }
  throw new Locked(path, await readHolder(path), program);
}

/** Never opens an existing file: closing it would drop this process's own locks (fcntl(2)). */
async function createLock(path: string): Promise<void> {
  try {
    await touch('write', path, async () => closeSync(openSync(path, 'wx', 0o600)), ['EEXIST']);
  } catch (error) {
    ignore(error, ['EEXIST'], undefined);
  }
}

function tryLock(path: string, openDatabase: () => DatabaseSync): DatabaseSync | null {
  let database: DatabaseSync | null = null;
  try {
    database = openDatabase();
    // An in-memory journal avoids a second file. There is nothing to roll back.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database?.close();
    const result = Number((error as { errcode?: number }).errcode) & 0xff;
    if (result === busy) return null;
    const code = diskCodes[result];
    throw code === undefined ? error : new DiskFailed('lock', path, errnoError(code));
  }
}

/** SQLite's result codes (sqlite.org/rescode.html), and the system errors that cause them. */
const busy = 5;
const diskCodes: Readonly<Record<number, 'EACCES' | 'EROFS' | 'EIO' | 'ENOSPC'>> = {
  3: 'EACCES',
  8: 'EROFS',
  10: 'EIO',
  13: 'ENOSPC',
  14: 'EACCES',
};

function errnoError(code: keyof typeof constants.errno): NodeJS.ErrnoException {
  return Object.assign(new Error(code), { code, errno: -constants.errno[code] });
}

/** The inode of the lock file, or null. Rejects a link: SQLite would create its target. */
function inodeOf(path: string): number | null {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return null;
  if (!found.isFile()) throw new NotOurs('the entry at the path of the lock', path, 'remove it');
  return found.ino;
}

/** Creates a new file each time: the existing file may be a link to another user's file. */
async function writeHolder(path: string): Promise<void> {
  rmSync(holderOf(path), { force: true });
  writeFileSync(holderOf(path), `${process.pid}\n`, { mode: 0o600, flag: 'wx' });
}

async function readHolder(path: string): Promise<string> {
  const text = await readText(holderOf(path)).catch(() => null);
  return /^\d+$/.exec(text?.trim() ?? '')?.[0] ?? 'unknown';
}

function holderOf(path: string): string {
  return `${path}.pid`;
}
