import { type FileHandle, mkdtemp, open, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, type MockInstance, test, vi } from 'vitest';
import { UnreadableFile } from '../../src/core/errors.ts';
import { KnownTexts } from '../../src/store/known-texts.ts';

let folder: string;
let path: string;
let readings: MockInstance<FileHandle['readFile']>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cpn-texts-'));
  path = join(folder, 'file');
  await writeFile(path, 'first');
  readings = await countReadings();
});
afterEach(async () => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  await rm(folder, { recursive: true });
});

async function countReadings() {
  const file = await open(path);
  const prototype = Object.getPrototypeOf(file) as FileHandle;
  await file.close();
  return vi.spyOn(prototype, 'readFile');
}

/** As long after the last change as no clock of a file system is coarse. */
function later(): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 10_000 });
}

test('what has not changed is not read again', async () => {
  const texts = new KnownTexts();
  later();
  for (let round = 0; round < 3; round += 1) expect(await texts.read(path)).toBe('first');
  expect(readings).toHaveBeenCalledTimes(1);
});

test('what changed a moment ago is read again: its clock may be too coarse to tell', async () => {
  const texts = new KnownTexts();
  for (let round = 0; round < 3; round += 1) expect(await texts.read(path)).toBe('first');
  expect(readings).toHaveBeenCalledTimes(3);
});

test.each([
  ['written anew', () => writeFile(path, 'second')],
  ['written anew with as many letters', () => writeFile(path, 'other')],
  [
    'written anew, with the times of before',
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
])('what was %s is read', async (_, change) => {
  const texts = new KnownTexts();
  await utimes(path, 1, 1);
  later();
  await texts.read(path);
  await change();
  expect(await texts.read(path)).not.toBe('first');
});

test('what is gone is gone, and what is not to be believed is not, read before or not', async () => {
  const texts = new KnownTexts();
  later();
  await texts.read(path);
  const judge = () => {
    throw new UnreadableFile(path, 'is not to be believed', 'do not');
  };
  await expect(texts.read(path, judge)).rejects.toThrow(UnreadableFile);
  await rm(path);
  expect(await texts.read(path)).toBeNull();
});

test('what is forgotten is read again', async () => {
  const texts = new KnownTexts();
  later();
  await texts.read(path);
  texts.forget(path);
  await texts.read(path);
  expect(readings).toHaveBeenCalledTimes(2);
});
