import fs from 'node:fs';
import { mkdtemp, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, type MockInstance, test, vi } from 'vitest';
import { UnreadableFile } from '../../../src/core/errors/index.ts';
import { FileCache } from '../../../src/store/files/file-cache.ts';

let folder: string;
let path: string;
let readings: MockInstance<typeof fs.readFileSync>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-files-'));
  path = join(folder, 'file');
  await writeFile(path, 'first');
  readings = vi.spyOn(fs, 'readFileSync');
  syncBuiltinESMExports();
});
afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  parse.mockClear();
  await rm(folder, { recursive: true });
});

const parse = vi.fn((_path: string, text: string) => text.toUpperCase());
const newCache = () => new FileCache(parse);

/** Longer after the last change than any file system's clock is coarse. */
function later(): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10_000 });
}

test('a file that has not changed is read and parsed once', async () => {
  const files = newCache();
  later();
  for (let round = 0; round < 3; round += 1) expect((await files.read(path))?.text).toBe('first');
  expect(readings).toHaveBeenCalledTimes(1);
  expect(parse).toHaveBeenCalledTimes(1);
});

test('a file that changed within the granularity of the clock is read again, and parsed once', async () => {
  const files = newCache();
  for (let round = 0; round < 3; round += 1) expect((await files.read(path))?.text).toBe('first');
  expect(readings).toHaveBeenCalledTimes(3);
  expect(parse).toHaveBeenCalledTimes(1);
});

test.each([
  ['rewritten', () => writeFile(path, 'second')],
  ['rewritten in the same length', () => writeFile(path, 'other')],
  [
    'rewritten, with its old times',
    async () => {
      await writeFile(path, 'other');
      await utimes(path, 1, 1);
    },
  ],
  [
    'replaced',
    async () => {
      await writeFile(`${path}.new`, 'other');
      await rename(`${path}.new`, path);
    },
  ],
])('a file that was %s is read again', async (_, change) => {
  const files = newCache();
  await utimes(path, 1, 1);
  later();
  await files.read(path);
  await change();
  expect((await files.read(path))?.value).not.toBe('FIRST');
});

test('a removed file and one that is not trusted are not taken from the cache', async () => {
  const files = newCache();
  later();
  await files.read(path);
  const judge = () => {
    throw new UnreadableFile(path, 'is not trusted', 'do not');
  };
  await expect(files.read(path, judge)).rejects.toThrow(UnreadableFile);
  await rm(path);
  expect(await files.read(path)).toBeNull();
});

test('what is about to be written is not parsed once it is there, and what is still there is', async () => {
  const files = newCache();
  files.expect(path, Buffer.from('second'), 'second', 'as written', false);
  expect((await files.read(path))?.value).toBe('FIRST');
  files.expect(path, Buffer.from('second'), 'second', 'as written', false);
  await writeFile(path, 'second');
  expect(await files.read(path)).toMatchObject({ value: 'as written', isSynced: false });
  expect(parse).toHaveBeenCalledTimes(1);
});

test('a forgotten file is read again', async () => {
  const files = newCache();
  later();
  await files.read(path);
  files.forget(path);
  await files.read(path);
  expect(readings).toHaveBeenCalledTimes(2);
});
