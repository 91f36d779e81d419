import { type FileHandle, mkdtemp, open, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, type MockInstance, test, vi } from 'vitest';
import { UnreadableFile } from '../../../src/core/errors/index.ts';
import { FileCache } from '../../../src/store/files/file-cache.ts';

let folder: string;
let path: string;
let readings: MockInstance<FileHandle['readFile']>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-files-'));
  path = join(folder, 'file');
  await writeFile(path, 'first');
  readings = await countReadings();
});
afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  parse.mockClear();
  await rm(folder, { recursive: true });
});

const parse = vi.fn((_path: string, text: string) => text.toUpperCase());
const newCache = () => new FileCache(parse);

async function countReadings() {
  const file = await open(path);
  const prototype = Object.getPrototypeOf(file) as FileHandle;
  await file.close();
  return vi.spyOn(prototype, 'readFile');
}

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

test('a forgotten file is read again', async () => {
  const files = newCache();
  later();
  await files.read(path);
  files.forget(path);
  await files.read(path);
  expect(readings).toHaveBeenCalledTimes(2);
});
