import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DiskFailed } from '../../src/core/errors/index.ts';
import { fallbackStore } from '../../src/store/fallback-store.ts';
import { fileStore } from '../../src/store/file-store.ts';
import type { State } from '../../src/store/state/state.ts';
import type { Folders, HostStore } from '../../src/store/store.ts';
import { foldersIn, state } from './samples.ts';

const down: State = { ...state, enabled: false };

describe('fallbackStore', () => {
  let root: string;
  let folders: Folders;
  let disk: HostStore;
  let store: HostStore;
  let events: string[];
  let clock: number;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'cpn-memory-'));
    folders = foldersIn(root);
    disk = fileStore(folders);
    events = [];
    clock = 0;
    store = fallbackStore(
      disk,
      (event, error) => events.push(error instanceof DiskFailed ? `${event} ${error.facts.code}` : event),
      () => clock,
    );
  });

  afterEach(() => rm(root, { recursive: true }));

  const pathOf = (link: string) => join(folders.state, `${link}.json`);
  /** A folder where the temporary file would be refuses every write of this process, root or not. */
  const obstacle = (link: string) => `${pathOf(link)}.${process.pid}.tmp`;
  const obstruct = async (link: string) => {
    await mkdir(join(obstacle(link), 'inside'), { recursive: true });
  };
  const clear = (link: string) => rm(obstacle(link), { recursive: true });

  async function failToWrite(): Promise<void> {
    await store.write(down);
    await obstruct('cpn0');
    await store.lock(() => store.write(state));
  }

  it('reads and writes the disk while that works', async () => {
    await store.lock(() => store.write(state));
    expect(await disk.read('cpn0')).toEqual(state);
    expect(await store.read('cpn0')).toEqual(state);
    expect(await store.read('cpn1')).toBeNull();
    expect(events).toEqual([]);
  });

  it('keeps a first state that was never on the disk', async () => {
    await obstruct('cpn0');
    await store.write(state);
    expect(await store.read('cpn0')).toEqual(state);
    expect((await store.list()).states).toEqual([state]);
    await clear('cpn0');
    clock += 10_000;
    expect((await store.list()).states).toEqual([state]);
    expect(await disk.read('cpn0')).toEqual(state);
    expect(events).toEqual([expect.stringMatching(/^failing E/), 'recovered']);
  });

  it('is on the disk once it is written there', async () => {
    await failToWrite();
    expect(store.isOnDisk('cpn0')).toBe(false);
    await clear('cpn0');
    clock += 10_000;
    await store.read('cpn0');
    expect(store.isOnDisk('cpn0')).toBe(true);
  });

  it('retries under the lock that its caller holds', async () => {
    let depth = 0;
    const lock: HostStore['lock'] = async (work) => {
      depth += 1;
      if (depth > 1) throw new Error('locked twice');
      return disk.lock(work).finally(() => {
        depth -= 1;
      });
    };
    store = fallbackStore(
      { ...disk, lock },
      () => {},
      () => clock,
    );
    await failToWrite();
    await clear('cpn0');
    clock += 10_000;
    await store.lock(() => store.read('cpn0'));
    expect(await disk.read('cpn0')).toEqual(state);
  });

  it('forgets an unsaved wg-quick file that is set aside, or removed with its network', async () => {
    for (const end of [() => store.setConfigAside('cpn0'), () => store.forget('cpn0', [])]) {
      const path = `${store.configPath('cpn0')}.${process.pid}.tmp`;
      await mkdir(join(path, 'inside'), { recursive: true });
      await store.writeConfig('cpn0', 'unsaved');
      expect(await store.readConfig('cpn0')).toBe('unsaved');
      await rm(path, { recursive: true });
      await end();
      clock += 10_000;
      expect([await store.readConfig('cpn0'), await disk.readConfig('cpn0')]).toEqual([null, null]);
    }
  });

  it('keeps the content of a network that cannot be removed', async () => {
    const failure = new DiskFailed('remove', 'cpn0', Object.assign(new Error('EIO'), { code: 'EIO', errno: -5 }));
    store = fallbackStore(
      { ...disk, forget: () => Promise.reject(failure) },
      () => {},
      () => clock,
    );
    await failToWrite();
    await expect(store.forget('cpn0', [])).rejects.toBe(failure);
    expect(await store.read('cpn0')).toEqual(state);
  });

  it('retries only after a while, and writes the newest content', async () => {
    await failToWrite();
    await clear('cpn0');
    clock += 1000;
    await store.read('cpn0');
    const newest = { ...state, refused: 'x' };
    await store.write(newest);
    expect(await disk.read('cpn0')).toEqual(down);
    clock += 10_000;
    expect(await store.read('cpn0')).toEqual(newest);
    expect(await disk.read('cpn0')).toEqual(newest);
    expect(events).toHaveLength(2);
  });

  it('retries each network on its own', async () => {
    await obstruct('cpn0');
    await obstruct('cpn1');
    await store.write(state);
    await store.write({ ...state, interface: 'cpn1' });
    await clear('cpn1');
    clock += 10_000;
    await store.list();
    expect((await disk.list()).states.map((each) => each.interface)).toEqual(['cpn1']);
    expect(events).toHaveLength(1);
  });

  it('drops its content where another process has written since', async () => {
    await failToWrite();
    await clear('cpn0');
    const newer = { ...down, refused: 'another process' };
    await fileStore(folders).write(newer);
    clock += 10_000;
    expect(await store.read('cpn0')).toEqual(newer);
    expect(await disk.read('cpn0')).toEqual(newer);
    expect(events.at(-1)).toBe('recovered');
  });

  it('does not write while another process has the lock', async () => {
    await failToWrite();
    await clear('cpn0');
    clock += 10_000;
    let reading: Promise<State | null> | undefined;
    await disk.lock(async () => {
      reading = store.read('cpn0');
      // Long enough for a write that does not wait.
      for (let turn = 0; turn < 20; turn += 1) await disk.read('cpn0');
      expect(await disk.read('cpn0')).toEqual(down);
    });
    expect(await reading).toEqual(state);
    expect(await disk.read('cpn0')).toEqual(state);
  });

  it('returns what it read last when the disk fails to read', async () => {
    await store.write(state);
    await store.write({ ...state, interface: 'cpn1' });
    await store.list();
    await rm(pathOf('cpn0'));
    await mkdir(pathOf('cpn0'));
    expect(await store.read('cpn0')).toEqual(state);
    const listing = await store.list();
    expect(listing.states.map((each) => each.interface)).toEqual(['cpn0', 'cpn1']);
    expect(listing.unreadable).toEqual([]);
    expect(events).toEqual(['failing EISDIR']);
    await rm(pathOf('cpn0'), { recursive: true });
    await disk.write(state);
    await store.read('cpn0');
    expect(events).toEqual(['failing EISDIR', 'recovered']);
  });

  it('lists every network when the folder cannot be read', async () => {
    await store.write(state);
    await rm(folders.state, { recursive: true });
    await writeFile(folders.state, 'no folder');
    expect((await store.list()).states).toEqual([state]);
    expect(events).toEqual(['failing ENOTDIR']);
  });

  it('reports a state that it could never read as unreadable', async () => {
    await mkdir(pathOf('cpn0'), { recursive: true });
    const { states, unreadable } = await store.list();
    expect(states).toEqual([]);
    expect(unreadable).toEqual([{ interface: 'cpn0', error: expect.any(DiskFailed) }]);
    await expect(store.read('cpn0')).rejects.toThrow(DiskFailed);
  });

  it('drops a network that another process left', async () => {
    await failToWrite();
    await clear('cpn0');
    await disk.forget('cpn0', []);
    expect(await store.read('cpn0')).toBeNull();
    expect((await store.list()).states).toEqual([]);
    expect(events.at(-1)).toBe('recovered');
  });

  it('works without a lock where the disk cannot hold one, one after the other, and throws what fails', async () => {
    await store.write(state);
    await writeFile(folders.runtime, 'no folder');
    let working = 0;
    let most = 0;
    const work = async () => {
      working += 1;
      most = Math.max(most, working);
      await new Promise((resolve) => setImmediate(resolve));
      working -= 1;
      return 'done';
    };
    expect(await Promise.all([store.lock(work), store.lock(work), store.lockDaemon(async () => 'life')])).toEqual([
      'done',
      'done',
      'life',
    ]);
    expect(most).toBe(1);
    await expect(store.lock(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await store.lock(work)).toBe('done');
    expect(events).toEqual([expect.stringMatching(/^failing E/)]);
    await rm(folders.runtime);
    await store.lock(work);
    expect(events.at(-1)).toBe('recovered');
  });

  it('does not repeat work that failed for the disk', async () => {
    let times = 0;
    const work = async () => {
      times += 1;
      throw new DiskFailed('write', '/x', Object.assign(new Error(), { code: 'EIO', errno: -5 }));
    };
    await expect(store.lock(work)).rejects.toThrow('cannot write /x: i/o error (EIO)');
    expect(times).toBe(1);
  });
});
