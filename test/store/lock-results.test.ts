import { mkdtempSync, rmSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { DiskFailed, Locked } from '../../src/core/errors/index.ts';
import { fileStore } from '../../src/store/file-store.ts';
import { isLocked, passLock, withLock } from '../../src/store/lock.ts';
import type { Folders } from '../../src/store/store.ts';
import { memory } from '../lab/memory.ts';
import { state } from './samples.ts';

let folder: string;
let folders: Folders;
beforeEach(() => {
  folder = mkdtempSync(join(memory, 'cpn-results-'));
  const inner = join(folder, 'var/lib');
  folders = { config: join(folder, 'etc'), state: join(inner, 'cpn'), runtime: join(inner, 'cpn/run') };
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

const atOnce = { ...passLock, patienceMs: 0 };

/** Has SQLite fail with a result code (sqlite.org/rescode.html). */
function failWith(errcode: number | undefined): void {
  vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(() => {
    throw Object.assign(new Error('sqlite'), { errcode });
  });
}

describe('a lock that SQLite fails to take', () => {
  it.each([
    [3, 'EACCES'],
    [8, 'EROFS'],
    [10, 'EIO'],
    [13, 'ENOSPC'],
    [14, 'EACCES'],
    [10 | (15 << 8), 'EIO'],
    [8 | (6 << 8), 'EROFS'],
  ])('with the code %i is a failure of the disk, %s', async (result, code) => {
    failWith(result);
    let begun = false;
    const failure = await withLock(folder, async () => {
      begun = true;
    }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(DiskFailed);
    expect([(failure as DiskFailed).facts.code, begun]).toEqual([code, false]);
  });

  it.each([5, 5 | (1 << 8), 5 | (2 << 8)])('with the code %i is held by another process', async (result) => {
    failWith(result);
    await expect(withLock(folder, async () => {}, atOnce)).rejects.toThrow(Locked);
    expect(await isLocked(folder)).toBe(true);
  });

  it.each([1, 6, 26, undefined])('with the code %s fails with that error, and is not held', async (result) => {
    failWith(result);
    await expect(withLock(folder, async () => {}, atOnce)).rejects.toThrow('sqlite');
    expect(await isLocked(folder)).toBe(false);
  });
});

it.each(['12a', '', '-7', '7 8'])('a holder that cannot be named is unknown: %j', async (text) => {
  failWith(5);
  await writeFile(join(folder, 'lock.pid'), text);
  await expect(withLock(folder, async () => {}, atOnce)).rejects.toThrow('pid unknown');
});

it.each(['change', 'lock'] as const)(
  'a second %s waits for the first, also where that removes the folder as the last trace of cpn',
  async (which) => {
    const [one, other] = [fileStore(folders), fileStore(folders)];
    const order: string[] = [];
    const [tried, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const exec = DatabaseSync.prototype.exec;
    vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (this: DatabaseSync, sql) {
      if (order.length > 0) tried.resolve();
      return Reflect.apply(exec, this, [sql]);
    });
    await one[which](async () => {
      order.push('first');
      void other[which](async () => order.push('second')).then(() => second.resolve(), second.reject);
      await tried.promise;
      order.push('first ends');
    });
    await second.promise;
    expect(order).toEqual(['first', 'first ends', 'second']);
    expect(await readdir(folder)).toEqual([]);
  },
);

it('the folders that cpn made are removed from the innermost outwards, whatever order they are known in', async () => {
  for (const isReversed of [false, true]) {
    const store = fileStore(folders);
    const made = [...(await store.prepare())];
    await store.write(state);
    const later = fileStore(folders);
    await later.lock(() => later.forget('cpn0', isReversed ? made.toReversed() : made));
    expect(await readdir(folder)).toEqual([]);
  }
});

it.each(['daemon', 'change'])('the files of a killed process, %s, go with the last network', async (name) => {
  const store = fileStore(folders);
  await store.prepare();
  for (const file of [name, `${name}.pid`]) await writeFile(join(folders.runtime, file), '');
  await store.lock(async () => {});
  expect(await readdir(folder)).toEqual([]);
});

it('what cannot be removed at the end hides no failure of the work, and is one where the work is done', async () => {
  const store = fileStore(folders);
  await store.prepare();
  const spoil = async () => {
    rmSync(join(folders.runtime, 'lock.pid'), { force: true, recursive: true });
    await mkdir(join(folders.runtime, 'lock.pid/inside'), { recursive: true });
  };
  const failing = async () => {
    await spoil();
    throw new Error('the work');
  };
  await expect(store.lock(failing)).rejects.toThrow('the work');
  await expect(store.lock(spoil)).rejects.toThrow(DiskFailed);
});
