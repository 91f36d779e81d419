import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DiskFailed, Locked } from '../../src/core/errors/index.ts';
import { fileStore } from '../../src/store/file-store.ts';
import { passLock, removeLock, withLock } from '../../src/store/lock.ts';
import type { Folders } from '../../src/store/store.ts';
import { state } from './samples.ts';

let folder: string;
let folders: Folders;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-lock-'));
  folders = { config: join(folder, 'etc'), state: join(folder, 'state'), runtime: join(folder, 'run') };
});

afterEach(() => rm(folder, { recursive: true, force: true }));

const atOnce = { ...passLock, patienceMs: 0 };

/** Another process, with a store, that holds what `call` gives it until it is killed. */
async function startHolder(call: 'lock' | 'lockDaemon') {
  const module = join(import.meta.dirname, '../../src/store/file-store.ts');
  const script = `import { fileStore } from ${JSON.stringify(module)};
    const store = fileStore(${JSON.stringify(folders)});
    await store.${call}(async () => { console.log('held'); await new Promise((done) => setTimeout(done, 60_000)); });`;
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  return {
    pid: holder.pid,
    async [Symbol.asyncDispose]() {
      holder.kill('SIGKILL');
      if (holder.exitCode === null && holder.signalCode === null) await once(holder, 'exit');
    },
  };
}

const reject = (error: unknown) => error;

describe('the lock', () => {
  it('is known to be held, by another process and by this one, and not where there is none', async () => {
    const store = fileStore(folders);
    expect(await store.isLocked()).toBe(false);
    expect(await readdir(folder)).toEqual([]);
    await store.write(state);
    await store.lock(async () => expect(await store.isLocked()).toBe(true));
    expect(await store.isLocked()).toBe(false);
    await using _ = await startHolder('lock');
    expect(await store.isLocked()).toBe(true);
    await expect(withLock(folders.runtime, async () => {}, atOnce)).rejects.toThrow(Locked);
  });

  it('is held by one process at a time', async () => {
    let working = 0;
    let most = 0;
    const work = async () => {
      working += 1;
      most = Math.max(most, working);
      await new Promise((resolve) => setImmediate(resolve));
      working -= 1;
    };
    await Promise.all(Array.from({ length: 5 }, () => withLock(folder, work)));
    expect(most).toBe(1);
  });

  it('names its holder, and is free at once when that is killed', async () => {
    {
      await using holder = await startHolder('lock');
      const refused = await withLock(folders.runtime, async () => 'never', atOnce).catch(reject);
      expect(refused).toBeInstanceOf(Locked);
      expect(String(refused)).toContain(`another cpn (pid ${holder.pid})`);
    }
    expect(await withLock(folders.runtime, async () => 'mine', atOnce)).toBe('mine');
  });

  it('is free again after work that failed', async () => {
    await expect(withLock(folder, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await withLock(folder, async () => 'mine', atOnce)).toBe('mine');
  });

  it('that was removed by its holder is made again by the next one', async () => {
    await withLock(folder, () => removeLock(folder));
    expect(await withLock(folder, async () => 'mine', atOnce)).toBe('mine');
  });

  it('is held even where its holder cannot be named', async () => {
    await mkdir(join(folder, 'lock.pid'));
    expect(await withLock(folder, async () => 'mine', atOnce)).toBe('mine');
  });

  it('throws where the disk cannot hold it, and the work is not begun', async () => {
    await writeFile(folders.runtime, 'no folder');
    let begun = false;
    const refused = await fileStore(folders)
      .lock(async () => {
        begun = true;
      })
      .catch(reject);
    expect(refused).toBeInstanceOf(DiskFailed);
    expect(begun).toBe(false);
  });
});

describe('the lock of a daemon', () => {
  it('refuses a second daemon at once, and names the first', async () => {
    await using holder = await startHolder('lockDaemon');
    const refused = await fileStore(folders)
      .lockDaemon(async () => 'never')
      .catch(reject);
    expect(refused).toBeInstanceOf(Locked);
    expect(String(refused)).toContain(`another cpn run (pid ${holder.pid})`);
  });

  it('does not block the lock, not even for its own process', async () => {
    await using _holder = await startHolder('lockDaemon');
    expect(await withLock(folders.runtime, async () => 'mine', atOnce)).toBe('mine');
    const store = fileStore({ ...folders, runtime: join(folder, 'other') });
    expect(await store.lockDaemon(() => store.lock(async () => 'mine'))).toBe('mine');
  });

  it('is still refused to its own process after the lock was cleared', async () => {
    const store = fileStore(folders);
    await store.lockDaemon(async () => {
      await store.lock(async () => {});
      await expect(store.lockDaemon(async () => 'never')).rejects.toThrow(Locked);
    });
  });

  it('removes its files, and the folder where nothing else is left', async () => {
    const store = fileStore(folders);
    await store.lockDaemon(async () => expect(await readdir(folders.runtime)).toEqual(['daemon', 'daemon.pid']));
    expect(await readdir(folder)).toEqual([]);
  });

  it('removes the folders of a network that was left in its time', async () => {
    const store = fileStore(folders);
    const made = await store.prepare();
    await store.write({ ...state, receipt: made.map((path) => ({ made: 'folder', path })) });
    const daemon = fileStore(folders);
    await daemon.lockDaemon(async () => {
      await daemon.list();
      const command = fileStore(folders);
      await command.lock(() => command.forget('cpn0', made));
      expect(await readdir(folder)).toEqual(['run']);
    });
    expect(await readdir(folder)).toEqual([]);
  });

  it('of a daemon that was killed blocks no other process', async () => {
    {
      await using _holder = await startHolder('lockDaemon');
    }
    expect(await readdir(folders.runtime)).toContain('daemon');
    const store = fileStore(folders);
    await store.prepare();
    await store.lock(() => store.forget('cpn0', [folders.runtime]));
    expect(await readdir(folder)).toEqual([]);
  });
});

describe('a change by an operator', () => {
  it('does not block the lock, but a second change; one of them does not wait', async () => {
    const store = fileStore(folders);
    await store.change(async () => {
      expect(await readdir(folders.runtime)).toEqual(['change', 'change.pid']);
      expect(await store.lock(async () => 'mine')).toBe('mine');
      await expect(store.change(async () => 'never', false)).rejects.toThrow(Locked);
    });
    expect(await store.change(async () => 'mine', false)).toBe('mine');
    expect(await readdir(folder)).toEqual([]);
  });
});
