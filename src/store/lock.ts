import { open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { Locked } from '../core/errors.ts';
import { makeFolder } from './atomic-file.ts';

/** How long a command waits for another to finish, in milliseconds: longer than a join's request may take. */
const patience = 45_000;
const pause = 100;

/**
 * Runs `work` while no other cpn on this host changes anything. The lock is SQLite's, so the kernel drops it with the
 * process that holds it and there is never a stale one; Node itself has no file locks.
 */
export async function withLock<T>(folder: string, work: () => Promise<T>, deadlineMs = patience): Promise<T> {
  await makeFolder(folder);
  const path = join(folder, 'lock');
  const held = await acquire(path, deadlineMs);
  try {
    await writeFile(holderOf(path), `${process.pid}\n`, { mode: 0o600 });
    return await work();
  } finally {
    held.close();
  }
}

/** Removes the lock's files; only for the one who holds it. Whoever waits for it notices, and takes a new one. */
export async function removeLock(folder: string): Promise<void> {
  const path = join(folder, 'lock');
  await rm(holderOf(path), { force: true });
  await rm(path, { force: true });
}

async function acquire(path: string, deadlineMs: number): Promise<DatabaseSync> {
  const { DatabaseSync } = await import('node:sqlite');
  for (let waited = 0; waited <= deadlineMs; waited += pause) {
    if (waited > 0) await sleep(pause);
    await createLock(path);
    const before = await stat(path);
    const database = new DatabaseSync(path);
    if (tryLock(database) && (await stat(path).catch(() => null))?.ino === before.ino) return database;
    database.close();
  }
  throw new Locked(path, await readHolder(path));
}

/** Never opens a file that is there: closing it would drop the locks that this very process holds on it (fcntl(2)). */
async function createLock(path: string): Promise<void> {
  try {
    await (await open(path, 'wx', 0o600)).close();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function tryLock(database: { exec(sql: string): void }): boolean {
  try {
    // A journal would be a second file, and there is nothing to roll back.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return true;
  } catch (error) {
    if (/database is locked/.test(String(error))) return false;
    throw error;
  }
}

async function readHolder(path: string): Promise<string> {
  return (await readFile(holderOf(path), 'utf8').catch(() => 'unknown')).trim();
}

function holderOf(path: string): string {
  return `${path}.pid`;
}
