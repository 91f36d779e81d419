import { spawn } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fileStore } from '../../src/store/file-store.ts';
import { formatState } from '../../src/store/state/state-file.ts';
import type { HostStore } from '../../src/store/store.ts';
import { memory } from '../lab/memory.ts';
import { foldersIn, state } from './samples.ts';

const older = { ...state, enabled: false };
/** More checkpoints than anything here passes. */
const most = 200;

/** One thing that a process may be killed at. */
interface Scene {
  readonly call: 'write' | 'config' | 'mend' | 'leave';
  prepare(store: HostStore, root: string): Promise<void>;
  /** Looks at what a killed process left, with a store that knows nothing of it. */
  check(store: HostStore, root: string): Promise<void>;
}

/**
 * Kills a process at each of its checkpoints, and checks what it leaves; returns how many there are. Each is published before and after,
 * and what a process leaves after one is what it leaves before the next.
 */
async function killEverywhere({ call, prepare, check }: Scene): Promise<number> {
  for (let at = 1; at <= most; at += 2) {
    const root = await mkdtemp(join(memory, 'cpn-crash-'));
    try {
      await prepare(fileStore(foldersIn(root)), root);
      const wasKilled = await runWriter(root, call, at);
      await check(fileStore(foldersIn(root)), root);
      if (!wasKilled) return at - 1;
    } finally {
      await rm(root, { recursive: true, force: true });
    }
  }
  throw new Error(`${call} passes more than ${most} checkpoints`);
}

/** Whether it was killed; fails when it failed by itself. */
async function runWriter(root: string, call: string, at: number): Promise<boolean> {
  const preload = join(import.meta.dirname, '../lab/kill-at.cjs');
  const child = spawn(process.execPath, ['--require', preload, join(built, 'writer.js'), root, call], {
    env: { ...process.env, KILL_AT: String(at), NODE_COMPILE_CACHE: join(built, 'compiled') },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code, signal] = await once(child, 'exit');
  if (code !== null) expect(code).toBe(0);
  return signal === 'SIGKILL';
}

/** Each of the many processes runs what is built once: that takes half of what the sources take. */
let built: string;

beforeAll(async () => {
  built = await mkdtemp(join(tmpdir(), 'cpn-writer-'));
  const bundle = await rolldown({ input: join(import.meta.dirname, 'writer.ts'), platform: 'node' });
  await bundle.write({ dir: built, format: 'cjs' });
  await bundle.close();
});

afterAll(() => rm(built, { recursive: true, force: true }));

/** What is done to the disk, in order, as the checkpoints tell. */
async function record(work: () => Promise<unknown>): Promise<string[]> {
  const seen: string[] = [];
  const listen = (message: unknown) => {
    const { point, what } = message as { point: string; what: string };
    seen.push(`${point} ${basename(what)}`);
  };
  subscribe('cpn:checkpoint', listen);
  try {
    await work();
  } finally {
    unsubscribe('cpn:checkpoint', listen);
  }
  // Each is published before and after.
  expect(seen.filter((_, at) => at % 2 === 0)).toEqual(seen.filter((_, at) => at % 2 === 1));
  return seen.filter((_, at) => at % 2 === 0);
}

describe('a power cut', () => {
  it('loses nothing that was written: the file is synced before its rename, and the folder before the write returns', async () => {
    const root = await mkdtemp(join(memory, 'cpn-crash-'));
    try {
      const store = fileStore(foldersIn(root));
      const first = await record(() => store.write(older));
      expect(first.slice(0, 2)).toEqual(['mkdir state', `fsync ${basename(root)}`]);
      const published = (await record(() => store.write(state))).filter((each) => !each.startsWith('unlink'));
      const copied = ['link cpn0.json', 'rename cpn0.json.previous', 'fsync state'];
      const replaced = ['write cpn0.json', 'write cpn0.json', 'fsync cpn0.json', 'rename cpn0.json', 'fsync state'];
      expect(published).toEqual([...copied, ...replaced]);
    } finally {
      await rm(root, { recursive: true });
    }
  });
});

describe.concurrent('a process that is killed, wherever it is,', () => {
  it('during the write of a state leaves the old one or the new one', { timeout: 120_000 }, async () => {
    const seen = new Set<boolean | undefined>();
    const points = await killEverywhere({
      call: 'write',
      prepare: (store) => store.write(older),
      async check(store) {
        const read = await store.read('cpn0');
        expect([older, state]).toContainEqual(read);
        expect(store.damaged.size).toBe(0);
        seen.add(read?.enabled);
        await store.write(state);
        expect(await store.read('cpn0')).toEqual(state);
      },
    });
    expect(points).toBeGreaterThan(12);
    expect(seen).toEqual(new Set([false, true]));
  });

  it('during the write of the first state leaves none or that one', { timeout: 120_000 }, async () => {
    const points = await killEverywhere({
      call: 'write',
      prepare: async () => {},
      async check(store) {
        expect([null, state]).toContainEqual(await store.read('cpn0'));
      },
    });
    expect(points).toBeGreaterThan(8);
  });

  it('during the write of the wg-quick file leaves the old one or the new one', { timeout: 120_000 }, async () => {
    const points = await killEverywhere({
      call: 'config',
      prepare: (store) => store.writeConfig('cpn0', 'old'),
      async check(store) {
        expect(['old', 'new']).toContain(await store.readConfig('cpn0'));
      },
    });
    expect(points).toBeGreaterThan(8);
  });

  it('during the repair of a damaged state leaves a file that reads as the previous copy', {
    timeout: 120_000,
  }, async () => {
    const points = await killEverywhere({
      call: 'mend',
      async prepare(store, root) {
        await store.write(older);
        await store.write(state);
        await writeFile(join(foldersIn(root).state, 'cpn0.json'), '\0\0\0');
      },
      async check(store, root) {
        const folder = foldersIn(root).state;
        expect(await store.read('cpn0')).toEqual(older);
        await store.lock(async () => {});
        expect(await readFile(join(folder, 'cpn0.json'), 'utf8')).toBe(formatState(older));
        expect(await readFile(join(folder, 'cpn0.json.damaged'), 'utf8')).toBe('\0\0\0');
      },
    });
    expect(points).toBeGreaterThan(20);
  });

  it('during a leave leaves what the next leave removes', { timeout: 120_000 }, async () => {
    const points = await killEverywhere({
      call: 'leave',
      async prepare(store) {
        await store.prepare();
        await store.write(older);
        await store.write(state);
        await store.writeConfig('cpn0', 'text');
      },
      async check(store, root) {
        const folders = foldersIn(root);
        // The state is removed last: with it, a later leave finds the rest.
        const left = (await readdir(folders.state).catch(() => [])).filter((name) => !name.endsWith('.tmp'));
        if (left.length > 0) expect(left).toContain('cpn0.json');
        await store.lock(() => store.forget('cpn0', Object.values(folders)));
        expect(await readdir(root)).toEqual([]);
      },
    });
    expect(points).toBeGreaterThan(20);
  });
});
