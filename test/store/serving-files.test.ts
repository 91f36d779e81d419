import { chmod, lstat, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fileStore } from '../../src/store/file-store.ts';
import type { HostStore } from '../../src/store/store.ts';
import { prefix } from '../core/samples.ts';

const one = prefix('192.168.50.0/24');
const two = prefix('10.0.0.0/8');

let runtime: string;
let store: HostStore;
beforeEach(async () => {
  runtime = await mkdtemp(join(tmpdir(), 'serving-'));
  store = fileStore({ config: join(runtime, 'config'), state: join(runtime, 'state'), runtime });
});
afterEach(() => rm(runtime, { recursive: true, force: true }));

const file = (name: string) => join(runtime, 'serving', 'cpn0', name);
const list = async () => (await readdir(join(runtime, 'serving', 'cpn0')).catch(() => [])).toSorted();

describe('the files of the routes in service', () => {
  it('are named by interface and prefix, have 1 or 0, and go with the route', async () => {
    await store.writeServing(
      'cpn0',
      new Map([
        [one, true],
        [two, false],
      ]),
    );
    expect(await readFile(file('192.168.50.0_24'), 'utf8')).toBe('1\n');
    expect(await readFile(file('10.0.0.0_8'), 'utf8')).toBe('0\n');
    await store.writeServing('cpn0', new Map([[one, true]]));
    expect(await list()).toEqual(['192.168.50.0_24']);
    await store.forget('cpn0', []);
    expect(await readdir(runtime)).toEqual([]);
  });

  it('are replaced only where the value changes', async () => {
    await store.writeServing('cpn0', new Map([[one, true]]));
    const { ino } = await stat(file('192.168.50.0_24'));
    await store.writeServing('cpn0', new Map([[one, true]]));
    expect((await stat(file('192.168.50.0_24'))).ino).toBe(ino);
    await store.clearServing('cpn0');
    expect(await readFile(file('192.168.50.0_24'), 'utf8')).toBe('0\n');
    expect((await stat(file('192.168.50.0_24'))).ino).not.toBe(ino);
  });

  it('are readable for all, whatever the umask, and open no other file', async () => {
    await chmod(runtime, 0o700);
    await writeFile(join(runtime, 'lock'), '', { mode: 0o600 });
    const before = process.umask(0o077);
    await store.writeServing('cpn0', new Map([[one, true]])).finally(() => process.umask(before));
    const modes = [runtime, join(runtime, 'serving'), join(runtime, 'serving', 'cpn0'), file('192.168.50.0_24')].map(
      async (each) => ((await stat(each)).mode & 0o777).toString(8),
    );
    expect(await Promise.all(modes)).toEqual(['711', '755', '755', '644']);
    expect((await stat(join(runtime, 'lock'))).mode & 0o777).toBe(0o600);
  });

  it.each([
    ['removed', 'serving/cpn0/192.168.50.0_24', null],
    ['with its folders removed', 'serving', null],
    ['replaced by a link', 'serving/cpn0/192.168.50.0_24', 'other/192.168.50.0_24'],
    ['in a folder that a link replaced', 'serving/cpn0', 'other'],
  ])('come back: one %s', async (_, path, target) => {
    await store.writeServing('cpn0', new Map([[one, true]]));
    await store.writeServing('other', new Map([[one, false]]));
    await rename(join(runtime, 'serving', 'other'), join(runtime, 'other'));
    await rm(join(runtime, path), { recursive: true });
    if (target !== null) await symlink(join(runtime, target), join(runtime, path));
    await store.writeServing('cpn0', new Map([[one, true]]));
    for (const each of ['serving', 'serving/cpn0', 'serving/cpn0/192.168.50.0_24'])
      expect((await lstat(join(runtime, each))).isSymbolicLink()).toBe(false);
    expect(await readFile(file('192.168.50.0_24'), 'utf8')).toBe('1\n');
    expect(await readFile(join(runtime, 'other', '192.168.50.0_24'), 'utf8')).toBe('0\n');
  });

  it('do not exist for a host that serves nothing', async () => {
    await store.writeServing('cpn0', new Map());
    await store.clearServing('cpn0');
    expect(await readdir(runtime)).toEqual([]);
  });
});
