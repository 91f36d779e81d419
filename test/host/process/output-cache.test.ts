import { afterEach, expect, test, vi } from 'vitest';
import { type AnonymousFile, openAnonymousFile } from '../../../src/host/process/anonymous-file.ts';
import { OutputCache } from '../../../src/host/process/output-cache.ts';

const files: AnonymousFile[] = [];

afterEach(() => {
  vi.restoreAllMocks();
  for (const file of files.splice(0)) file.close();
});

function printed(text: string): AnonymousFile {
  const file = openAnonymousFile(text);
  files.push(file);
  return file;
}

test.each([
  ['nothing', ''],
  ['a line', 'one\n'],
  ['no end of a line', 'ü'.repeat(300_000)],
  ['letters of more than a byte in many pieces', 'übermäßig €\n'.repeat(200_000)],
])('reads %s', async (_, text) => {
  expect(new OutputCache().read(printed(text))).toBe(text);
});

test('reads what is said now, whether it is longer, shorter, other, or as it was', async () => {
  const known = new OutputCache();
  for (const text of ['a\n', 'a\nb\n', 'a\n', 'c\n', 'c\n', '', 'c\n', 'a\nb\n']) {
    expect(known.read(printed(text))).toBe(text);
  }
});

test('two that read at once do not disturb each other', async () => {
  const known = new OutputCache();
  known.read(printed('first\n'));
  known.read(printed('second\n'));
  const texts = ['third\n', 'fourth\n', 'fifth\n'];
  const read = texts.map(async (text) => known.read(printed(text)));
  expect(await Promise.all(read)).toEqual(texts);
});

test('what is said again is not decoded again', async () => {
  const known = new OutputCache();
  known.read(printed('a\n'));
  const decode = vi.spyOn(Buffer.prototype, 'toString');
  expect(known.read(printed('a\n'))).toBe('a\n');
  expect(decode).not.toHaveBeenCalled();
  expect(known.read(printed('b\n'))).toBe('b\n');
  expect(decode).toHaveBeenCalled();
});
