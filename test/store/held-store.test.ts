import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { DiskFailed } from '../../src/core/errors/index.ts';
import { DiskFailures, FallbackFiles } from '../../src/store/fallback-files.ts';
import { fileStore } from '../../src/store/file-store.ts';
import { isLocked, passLock, withLock } from '../../src/store/lock.ts';
import { noNotes } from '../../src/store/notes.ts';
import type { Folders } from '../../src/store/store.ts';
import { memory } from '../lab/memory.ts';
import { state } from './samples.ts';

let folder: string;
let folders: Folders;
beforeEach(() => {
  folder = mkdtempSync(join(memory, 'cpn-held-'));
  folders = { config: join(folder, 'etc'), state: join(folder, 'state'), runtime: join(folder, 'run') };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('a lock whose file its holder removes while another process takes it is taken on a new file', async () => {
  const path = join(folder, passLock.file);
  const exec = DatabaseSync.prototype.exec;
  let removals = 0;
  const holding = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (this: DatabaseSync, sql) {
    if (sql.includes('BEGIN EXCLUSIVE') && removals === 0) {
      removals += 1;
      rmSync(path);
    }
    return Reflect.apply(exec, this, [sql]);
  });
  onTestFinished(() => holding.mockRestore());
  const seen = await withLock(folder, () => isLocked(folder));
  expect([removals, seen]).toEqual([1, true]);
});

test('what another process writes before the lock is held stays: what could not be written is older', async () => {
  let disk = 'first';
  let isFull = true;
  let at = 0;
  const full = Object.assign(new Error('ENOSPC'), { code: 'ENOSPC', errno: -28 });
  const files = new FallbackFiles<string>(
    {
      kind: 'config',
      read: async () => disk,
      write: async (_, text) => {
        if (isFull) throw new DiskFailed('write', 'cpn0', full);
        disk = text;
      },
      format: (text) => text,
    },
    {
      failures: new DiskFailures(() => {}),
      now: () => at,
      alone: async (work) => {
        // Until now another process held the lock.
        disk = 'of another process';
        await work();
      },
    },
  );
  await files.write('cpn0', 'unsaved');
  isFull = false;
  at += 60_000;
  expect([await files.read('cpn0'), disk]).toEqual(['of another process', 'of another process']);
});

test('notes that are written while a part is amended stay as they are written last', async () => {
  const store = fileStore(folders);
  const last = { ...noNotes, troubles: ['the last'] };
  await store.writeNotes('cpn0', { ...noNotes, troubles: ['the first'] });
  await Promise.all([store.amendNotes('cpn0', { inboundDropped: true }), store.writeNotes('cpn0', last)]);
  expect(await store.readNotes('cpn0')).toEqual(last);
});

test('a state that is read between its rename and the sync of that is synced by who writes it again', async () => {
  const store = fileStore(folders);
  const path = join(folders.state, 'cpn0.json');
  await store.write({ ...state, keySerial: 1 });
  const after: string[] = [];
  let again: Promise<void> | undefined;
  const onCheckpoint = (message: unknown) => {
    const { point, what } = message as { point: string; what: string };
    if (what !== path) return;
    if (again !== undefined) after.push(point);
    else if (point === 'rename') again = store.write({ ...state, keySerial: 2 });
  };
  subscribe('cpn:checkpoint', onCheckpoint);
  onTestFinished(() => void unsubscribe('cpn:checkpoint', onCheckpoint));
  await store.write({ ...state, keySerial: 2 });
  await again;
  expect(after).toContain('fsync');
});
