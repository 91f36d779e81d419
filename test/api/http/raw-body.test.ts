import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { FormData } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { openContent } from '../../../src/api/http/raw-body.ts';

const jsonType = { 'content-type': 'application/json' };

function fileOf(content: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'cpn-body-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'file'), content);
  return join(folder, 'file');
}

test('JSON and bytes are the same each time', async () => {
  const json = await openContent({ kind: 'json', value: { a: 1 } });
  expect([json.headers, json.open(), json.open()]).toEqual([jsonType, '{"a":1}', '{"a":1}']);
  const bytes = Buffer.from([0, 255]);
  const raw = await openContent({ kind: 'bytes', bytes });
  expect([raw.headers, raw.open()]).toEqual([jsonType, bytes]);
});

test('a file is read again for each attempt, and no further than its size, should it grow', async () => {
  const path = fileOf('whole');
  const { headers, open } = await openContent({ kind: 'file', path, size: 5 });
  appendFileSync(path, ' and more');
  expect(headers).toEqual({ ...jsonType, 'content-length': '5' });
  for (let attempt = 0; attempt < 2; attempt += 1) expect(await text(open() as Readable)).toBe('whole');
});

test('an empty file has no body', async () => {
  const { headers, open } = await openContent({ kind: 'file', path: fileOf(''), size: 0 });
  expect([headers['content-length'], open()]).toEqual(['0', null]);
});

test('a form has its texts and its files, by their own names', async () => {
  const path = fileOf('content');
  const parts = [
    { name: 'a', value: '1' },
    { name: 'b', path },
    { name: 'a', value: '2' },
  ];
  const { headers, open } = await openContent({ kind: 'form', parts });
  const form = open() as FormData;
  expect([headers, form.getAll('a')]).toEqual([{}, ['1', '2']]);
  const file = form.get('b') as File;
  expect([file.name, await file.text()]).toEqual([basename(path), 'content']);
});
