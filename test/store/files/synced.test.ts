import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import fs from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { DiskFailed } from '../../../src/core/errors/index.ts';
import {
  keepCopy,
  moveFile,
  removeFile,
  replaceFile,
  setTime,
  settleFile,
} from '../../../src/store/files/atomic-file.ts';
import { makeFolder } from '../../../src/store/files/folder.ts';
import { copiesOf, removeState } from '../../../src/store/state/state-copies.ts';
import { memory } from '../../lab/memory.ts';

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(memory, 'cpn-synced-'));
  path = join(folder, 'file');
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** The actions on the disk, each with the name of its file; `.` is the folder. */
async function actionsOf(work: () => Promise<unknown>): Promise<string[]> {
  const points: string[] = [];
  const note = (message: unknown) => {
    const { point, what } = message as { point: string; what: string };
    points.push(`${point} ${what === folder ? '.' : basename(what)}`);
  };
  subscribe('cpn:checkpoint', note);
  await work().finally(() => unsubscribe('cpn:checkpoint', note));
  // Each is published before and after.
  return points.filter((_, at) => at % 2 === 0);
}

const written = ['unlink file', 'write file', 'write file'];

it.each<[string, () => Promise<unknown>, string[]]>([
  ['replaced', () => replaceFile(path, 'x'), [...written, 'fsync file', 'rename file', 'unlink file', 'fsync .']],
  [
    'replaced with a mode',
    () => replaceFile(path, 'x', { mode: 0o644 }),
    [...written, 'fsync file', 'rename file', 'unlink file', 'fsync .'],
  ],
  [
    'replaced without need',
    () => replaceFile(path, 'x', { durable: false, modified: new Date(0) }),
    [...written, 'rename file', 'unlink file'],
  ],
  ['settled', () => settleFile(path), ['fsync file', 'fsync .']],
  ['moved', () => moveFile(path, join(folder, 'other')), ['rename file', 'fsync .']],
  ['removed', () => removeFile(path), ['unlink file', 'fsync .']],
  ['touched', () => setTime(path, new Date(0)), ['write file']],
  [
    'copied',
    () => keepCopy(path, join(folder, 'copy'), 'text'),
    ['unlink copy', 'link file', 'rename copy', 'unlink copy', 'fsync .'],
  ],
])('a file that is %s is on the disk afterwards as far as it must survive a power cut', async (_, work, actions) => {
  await writeFile(path, 'text');
  expect(await actionsOf(work)).toEqual(actions);
  expect((await readdir(folder)).filter((name) => name.endsWith('.tmp'))).toEqual([]);
});

it('a folder is on the disk before what is made in it, and only its owner can enter it', async () => {
  const inner = join(folder, 'outer', 'inner');
  expect(await actionsOf(() => makeFolder(inner))).toEqual(['mkdir outer', 'fsync .', 'mkdir inner', 'fsync outer']);
  expect((await stat(inner)).mode & 0o777).toBe(0o700);
  expect(await makeFolder(inner)).toEqual([]);
});

it('a state is removed after its copies, so that it can be removed again after a crash', async () => {
  for (const each of copiesOf(path)) await writeFile(each, 'key');
  const removed = (await actionsOf(() => removeState(path))).filter((action) => action.startsWith('unlink'));
  expect(removed).toEqual(['unlink file.previous', 'unlink file.damaged', 'unlink file']);
  expect(await readdir(folder)).toEqual([]);
});

/** Has link(2) fail with an error. */
function failLinks(code: string): void {
  vi.spyOn(fs, 'linkSync').mockImplementation(() => {
    throw Object.assign(new Error(code), { code, errno: -1 });
  });
  syncBuiltinESMExports();
  onTestFinished(() => {
    vi.restoreAllMocks();
    syncBuiltinESMExports();
  });
}

it.each(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK'])(
  'a copy is a file of its own, and on the disk, where links fail with %s',
  async (code) => {
    await writeFile(path, 'text');
    failLinks(code);
    const actions = await actionsOf(() => keepCopy(path, join(folder, 'copy'), 'text'));
    expect(actions).toEqual(expect.arrayContaining(['fsync copy', 'rename copy', 'fsync .']));
    expect(await readFile(join(folder, 'copy'), 'utf8')).toBe('text');
    expect((await stat(join(folder, 'copy'))).mode & 0o777).toBe(0o600);
  },
);

it.each(['EIO', 'ENOSPC', 'EROFS', 'EACCES'])('a copy fails where links fail with %s', async (code) => {
  await writeFile(path, 'text');
  failLinks(code);
  await expect(keepCopy(path, join(folder, 'copy'), 'text')).rejects.toThrow(DiskFailed);
  expect(await readdir(folder)).toEqual(['file']);
});

it('what a killed process of the same id left in the place of a temporary file is replaced', async () => {
  await writeFile(`${path}.${process.pid}.tmp`, 'of another');
  await replaceFile(path, 'text');
  expect([await readFile(path, 'utf8'), await readdir(folder)]).toEqual(['text', ['file']]);
});

it('a file that cannot be replaced leaves no temporary file', async () => {
  await mkdir(join(path, 'inside'), { recursive: true });
  await expect(replaceFile(path, 'text')).rejects.toThrow(DiskFailed);
  expect(await readdir(folder)).toEqual(['file']);
});

it.each([0o600, 0o640, 0o644])('a file has the mode %o whatever the umask', async (mode) => {
  const before = process.umask(0o077);
  onTestFinished(() => void process.umask(before));
  await replaceFile(path, 'text', { mode });
  expect((await stat(path)).mode & 0o777).toBe(mode);
});
